#include "spyre/program/origin.h"

#include "spyre/base/json.h"

namespace spyre::program {

OpOrigin origin_in(std::string_view sdsc) {
  const Result<Json> parsed = parse_json(sdsc, "sdsc");
  if (!parsed.ok() || !parsed.value().is_object() || parsed.value().empty()) return {};
  const Json& body = *parsed.value().begin();
  const auto handle = body.is_object() ? body.find("debug_handle_") : body.end();
  if (!body.is_object() || handle == body.end() || !handle->is_object()) return {};
  const auto text = [](const Json& object, const char* field) {
    const auto found = object.find(field);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  OpOrigin origin = {.aten = text(*handle, "aten_op")};
  const auto source = handle->find("source");
  if (source == handle->end() || !source->is_object()) return origin;
  const auto line = source->find("start_line");
  origin.source = text(*source, "file");
  if (!origin.source.empty() && line != source->end() && line->is_number_integer())
    origin.source += ":" + std::to_string(line->get<int64_t>());
  return origin;
}

}  // namespace spyre::program
