# shorthand_embed(target name files...): compiles files into a target, as a table that
# `EmbeddedFiles_<name>()` returns (tools/shorthand/embedded.h).
#
# Run as a script (cmake -DOUTPUT=... -DNAME=... -DFILES="a;b" -P) it writes that table's source.

if(CMAKE_SCRIPT_MODE_FILE)
  set(arrays "")
  set(rows "")
  set(number 0)
  foreach(file IN LISTS FILES)
    cmake_path(GET file FILENAME file_name)
    file(READ "${file}" hex HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    string(APPEND arrays "constexpr unsigned char kFile${number}[] = {${bytes}0};\n")
    string(APPEND rows
      "    {\"${file_name}\", {reinterpret_cast<const char*>(kFile${number}), sizeof(kFile${number}) - 1}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(WRITE "${OUTPUT}"
    "#include \"embedded.h\"\n\nnamespace shorthand {\nnamespace {\n\n${arrays}\n"
    "const EmbeddedFile kFiles[] = {\n${rows}};\n\n}  // namespace\n\n"
    "std::span<const EmbeddedFile> EmbeddedFiles_${NAME}() { return kFiles; }\n\n"
    "}  // namespace shorthand\n")
  return()
endif()

set(SHORTHAND_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(shorthand_embed target name)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/embedded_${name}.cc")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${output}" "-DNAME=${name}" "-DFILES=${ARGN}"
            -P "${SHORTHAND_EMBED_SCRIPT}"
    DEPENDS ${ARGN} "${SHORTHAND_EMBED_SCRIPT}" VERBATIM)
  target_sources(${target} PRIVATE "${output}")
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
endfunction()
