# How one layer becomes one CMake target.
#
#   spyre_layer(layout SOURCES a.cpp b.cpp DEPS arch base LIBS hwy::hwy TESTS a_test.cpp)
#
# makes the static library spyre_layout, links it with the layers it may know, and makes one test program,
# spyre_layout_test, whose cases run under `ctest -L unit`.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Eight sources at a time: a first build spends most of its time on headers. Anonymous namespaces of one target are thus
# one namespace: two of its sources cannot give one name to two things.
option(SPYRE_UNITY "Compile the sources of a target in groups of eight (OFF: one by one, for small rebuilds and clang-tidy)" ON)
set(CMAKE_UNITY_BUILD ${SPYRE_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

# Paths below the source folder count as relative, so that several checkouts share what one of them compiled.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

add_library(spyre_options INTERFACE)
target_include_directories(spyre_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(spyre_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers -Werror)
# GCC 12 sees overlaps in std::string concatenation that are not there (GCC bug 105651).
target_compile_options(spyre_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
# __FILE__ is the path below the source folder, in messages and for ccache.
target_compile_options(spyre_options INTERFACE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(SPYRE_SANITIZE)
  target_compile_options(spyre_options INTERFACE -fsanitize=${SPYRE_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer -g)
  target_link_options(spyre_options INTERFACE -fsanitize=${SPYRE_SANITIZE})
  # GCC 12's flow analysis loses track of std::optional in instrumented code.
  target_compile_options(spyre_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()

function(spyre_layer NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS;TESTS;TEST_DEPS" ${ARGN})
  add_library(spyre_${NAME} STATIC ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPS PREPEND spyre_)
  target_link_libraries(spyre_${NAME} PUBLIC spyre_options ${ARG_DEPS} ${ARG_LIBS})
  if(SPYRE_BUILD_TESTS AND ARG_TESTS)
    list(TRANSFORM ARG_TEST_DEPS PREPEND spyre_)
    add_executable(spyre_${NAME}_test ${ARG_TESTS})
    target_link_libraries(spyre_${NAME}_test PRIVATE spyre_${NAME} ${ARG_TEST_DEPS} GTest::gmock GTest::gtest_main)
    target_compile_options(spyre_${NAME}_test PRIVATE -O1)  # what they test is optimised; they compile faster so
    gtest_discover_tests(spyre_${NAME}_test TEST_PREFIX "${NAME}." PROPERTIES LABELS unit DISCOVERY_TIMEOUT 60)
  endif()
endfunction()
if(SPYRE_BUILD_TESTS)
  include(GoogleTest)
endif()
