# routesim_embed(SOURCE HEADER FILES...): texts that the command carries inside. HEADER, below
# build/generated, has a constant for each of FILES, `kPageCss` for page/page.css, and all of them by
# their paths in `kEmbedded`; only SOURCE may include it, so that a changed text compiles one file
# again.
function(routesim_embed source header)
  set(texts "")
  set(paths "")
  foreach(file IN LISTS ARGN)
    get_filename_component(path ${file} ABSOLUTE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    get_filename_component(name ${file} NAME)
    string(REGEX REPLACE "[^A-Za-z0-9]+" ";" words ${name})
    set(constant k)
    foreach(word IN LISTS words)
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND constant ${first}${rest})
    endforeach()
    file(READ ${path} text)
    string(APPEND texts
           "inline constexpr std::string_view ${constant} = R\"embedded(${text})embedded\";\n")
    file(RELATIVE_PATH inside ${PROJECT_SOURCE_DIR} ${path})
    string(APPEND paths "    {\"${inside}\", ${constant}},\n")
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/embedded.h.in ${PROJECT_BINARY_DIR}/generated/${header}
                 @ONLY)
  set_source_files_properties(${source} PROPERTIES
    SKIP_PRECOMPILE_HEADERS ON INCLUDE_DIRECTORIES ${PROJECT_BINARY_DIR}/generated)
endfunction()
