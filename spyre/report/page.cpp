#include "spyre/report/page.h"

#include "spyre/base/error.h"
#include "spyre/base/json.h"

namespace spyre::report {
namespace {

/// JSON that can stand inside a script element: `</script>` and `<!--` cannot end or change it.
std::string script_text(const Json& facts) {
  std::string text;
  for (const char c : facts.dump()) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string markup_text(std::string_view plain) {
  std::string text;
  for (const char c : plain) {
    switch (c) {
      case '<':
        text += "&lt;";
        break;
      case '>':
        text += "&gt;";
        break;
      case '&':
        text += "&amp;";
        break;
      case '"':
        text += "&quot;";
        break;
      default:
        text += c;
    }
  }
  return text;
}

std::string_view part(std::string_view name) {
  const std::string_view text = page_part(name);
  SPYRE_CHECK(!text.empty(), "no part of a page: " + std::string(name));
  return text;
}

}  // namespace

std::string render(const Page& page, const Json& facts) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>" +
      markup_text(page.title) + "</title>\n<style>\n";
  html += part("shell.css");
  for (const std::string_view style : page.styles) html += part(style);
  html += "</style>\n</head>\n<body>\n";
  html += part(page.body);
  html += "<div id=\"tip\" role=\"status\"></div>\n<script type=\"application/json\" id=\"facts\">";
  html += script_text(facts);
  html += "</script>\n<script>\n";
  html += part("shell.js");
  for (const std::string_view script : page.scripts) html += part(script);
  html += "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace spyre::report
