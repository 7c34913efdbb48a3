# cmake -DSOURCE=... -DVERSION=... -DOUTPUT=... -P sbom.cmake: an SPDX 2.3 document of the rows of
# docs/third-party.md. Versions are those of the Debian packages on this machine, NOASSERTION where
# there is no dpkg. The same commit on the same machine makes the same bytes.
execute_process(COMMAND git -C ${SOURCE} log -1 "--format=%ct %H" OUTPUT_VARIABLE commit
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(commit MATCHES "^([0-9]+) (.*)$")
  set(ENV{SOURCE_DATE_EPOCH} ${CMAKE_MATCH_1})
  set(name routesim-${VERSION}-${CMAKE_MATCH_2})
else()
  set(name routesim-${VERSION})
endif()
string(TIMESTAMP created "%Y-%m-%dT%H:%M:%SZ" UTC)

# relate(WORD FROM RELATION TO): adds a relation when the table says WORD of this row.
function(relate word from relation to)
  if(how MATCHES ${word})
    set(relations "${relations},
    {\"spdxElementId\": \"${from}\", \"relationshipType\": \"${relation}\", \"relatedSpdxElement\": \"${to}\"}"
        PARENT_SCOPE)
  endif()
endfunction()

set(packages "")
set(relations "")
file(STRINGS ${SOURCE}/docs/third-party.md rows REGEX "^\\| .* \\| https:")
foreach(row IN LISTS rows)
  string(REGEX REPLACE "^\\| | \\|$" "" row "${row}")
  string(REPLACE ";" "," row "${row}")
  string(REPLACE " | " ";" cells "${row}")
  list(GET cells 0 component)
  list(GET cells 1 how)
  list(GET cells 2 licence)
  list(GET cells 3 package)
  list(GET cells 4 copyright)
  list(GET cells 5 home)
  set(version NOASSERTION)
  execute_process(COMMAND dpkg-query -W "--showformat=\${Version}" ${package} ERROR_QUIET
                  OUTPUT_VARIABLE found RESULT_VARIABLE status)
  if(status EQUAL 0 AND found)
    set(version ${found})
  endif()
  string(REGEX REPLACE "[^A-Za-z0-9.]+" "-" id "SPDXRef-${package}")
  string(APPEND packages ",
    {\"SPDXID\": \"${id}\", \"name\": \"${component}\", \"versionInfo\": \"${version}\",
     \"downloadLocation\": \"NOASSERTION\", \"homepage\": \"${home}\", \"filesAnalyzed\": false, \"licenseConcluded\": \"${licence}\",
     \"licenseDeclared\": \"${licence}\", \"copyrightText\": \"Copyright ${copyright}\",
     \"sourceInfo\": \"Debian package ${package}\"}")
  relate("contained" SPDXRef-routesim CONTAINS ${id})
  relate("linked" SPDXRef-routesim DYNAMIC_LINK ${id})
  relate("tests" ${id} TEST_DEPENDENCY_OF SPDXRef-routesim)
  relate("image" ${id} OPTIONAL_COMPONENT_OF SPDXRef-routesim)
endforeach()

file(WRITE ${OUTPUT} "{
  \"spdxVersion\": \"SPDX-2.3\",
  \"dataLicense\": \"CC0-1.0\",
  \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"${name}\",
  \"documentNamespace\": \"https://spdx.org/spdxdocs/${name}\",
  \"creationInfo\": {\"created\": \"${created}\", \"creators\": [\"Tool: routesim cmake/sbom.cmake\"]},
  \"packages\": [
    {\"SPDXID\": \"SPDXRef-routesim\", \"name\": \"routesim\", \"versionInfo\": \"${VERSION}\",
     \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false, \"licenseConcluded\": \"Apache-2.0\",
     \"licenseDeclared\": \"Apache-2.0\", \"copyrightText\": \"Copyright 2026 The routesim authors\",
     \"primaryPackagePurpose\": \"APPLICATION\"}${packages}
  ],
  \"relationships\": [
    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-routesim\"}${relations}
  ]
}
")
