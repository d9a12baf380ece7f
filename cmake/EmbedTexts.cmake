# Text files as one C++ source, which answers for their names (spyre/report/page.h).
#
#   cmake -D OUT=parts.cpp -D DIRECTORY=page -D NAMES=a.css,b.js -P EmbedTexts.cmake
string(REPLACE "," ";" NAMES "${NAMES}")
file(WRITE ${OUT} "#include \"spyre/report/page.h\"\n\nnamespace spyre::report {\n\n"
                  "std::string_view page_part(std::string_view name) {\n")
foreach(NAME IN LISTS NAMES)
  file(READ ${DIRECTORY}/${NAME} TEXT)
  file(APPEND ${OUT} "  if (name == \"${NAME}\") return R\"embedded(" "${TEXT}" ")embedded\";\n")
endforeach()
file(APPEND ${OUT} "  return {};\n}\n\n}  // namespace spyre::report\n")
