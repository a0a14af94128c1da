# leadline_library(NAME SOURCES ... [PYTHON_SOURCES ...] [DEPENDS ...] [TESTS ...] [TEST_DEPENDS ...])
#
# One static library `leadline_NAME` per folder of native/ (an interface library where SOURCES is empty).
#   SOURCES         .cpp files without Python.h
#   PYTHON_SOURCES  .cpp files that include Python.h; built only with LEADLINE_PYTHON=ON
#   DEPENDS         folders it may use by the import table, such as `base cct`
#   TESTS           x_test.cpp files (doctest), one program `test_NAME` for all of them, registered with ctest
#   TESTS_OF_ONE_THREAD  the same, left out under the thread sanitizer: neither they nor what they test has a second thread
#   TEST_DEPENDS    further folders the tests need, such as `testing`
#
# leadline_python_module(NAME SOURCES ... DEPENDS ...): the extension module leadline.NAME (nanobind), installed into the
# package; nothing with LEADLINE_PYTHON=OFF.

find_package(Threads REQUIRED)

add_library(leadline_options INTERFACE)
target_include_directories(leadline_options INTERFACE "${PROJECT_SOURCE_DIR}/native" "${PROJECT_SOURCE_DIR}/native/include")
target_compile_options(leadline_options INTERFACE -Wall -Wextra $<$<BOOL:${LEADLINE_WERROR}>:-Werror>)
# GCC clears and copies a hundred bytes with `rep stos` and `rep movs`, which take longer to begin than all of it takes:
# some 10 ns for every event. clang-tidy reads the commands of the build and does not know these options.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT LEADLINE_TIDY)
  target_compile_options(leadline_options INTERFACE
    -mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign -mmemcpy-strategy=vector_loop:512:noalign,libcall:-1:noalign)
endif()
target_link_libraries(leadline_options INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
if(LEADLINE_PORTABLE)
  target_link_options(leadline_options INTERFACE -static-libstdc++)
  add_library(leadline_portable OBJECT "${PROJECT_SOURCE_DIR}/native/base/portable.c")
  target_link_libraries(leadline_options INTERFACE $<TARGET_OBJECTS:leadline_portable>)
endif()
if(LEADLINE_SANITIZE)
  target_compile_options(leadline_options INTERFACE -fsanitize=${LEADLINE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(leadline_options INTERFACE -fsanitize=${LEADLINE_SANITIZE})
endif()

if(LEADLINE_TESTS AND NOT LEADLINE_TIDY)
  # Tests are compiled with -O1, and with sanitizers, where GCC 12 sees strings of the library written beyond their own room
  target_compile_options(leadline_options INTERFACE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
endif()

# For an interpreter that cannot run here (tools/cross_wheels.py); the one that is found then only serves the build.
set(LEADLINE_PYTHON_HEADERS "" CACHE PATH "Folder of the other interpreter's Python.h and pyconfig.h")
set(LEADLINE_PYTHON_SOABI "" CACHE STRING "Its SOABI, such as cpython-311-aarch64-linux-gnu")

if(LEADLINE_PYTHON)
  if(LEADLINE_PYTHON_HEADERS)
    find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
    set(Python_INCLUDE_DIRS "${LEADLINE_PYTHON_HEADERS}")
    set(Python_SOABI "${LEADLINE_PYTHON_SOABI}")
    add_library(Python::Module INTERFACE IMPORTED)
    target_include_directories(Python::Module INTERFACE "${LEADLINE_PYTHON_HEADERS}")
  else()
    find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
  endif()
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
    OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT RESULT_VARIABLE missing)
  if(missing)
    message(FATAL_ERROR "The Python module needs nanobind in ${Python_EXECUTABLE}; run `pip install nanobind`.")
  endif()
  find_package(nanobind CONFIG REQUIRED)
endif()

if(LEADLINE_TESTS)
  # Copied, so that a cross build sees this one header of the host and no other.
  find_file(LEADLINE_DOCTEST_HEADER doctest.h PATH_SUFFIXES doctest PATHS /usr/include NO_CMAKE_FIND_ROOT_PATH)
  if(NOT LEADLINE_DOCTEST_HEADER)
    message(FATAL_ERROR "The C++ tests need doctest.h and it was not found; install the package doctest-dev.")
  endif()
  configure_file("${LEADLINE_DOCTEST_HEADER}" "${PROJECT_BINARY_DIR}/doctest/doctest/doctest.h" COPYONLY)
  add_custom_target(leadline_tests) # what ctest runs, and no more
  add_library(leadline_test_main OBJECT "${PROJECT_SOURCE_DIR}/native/testing/test_main.cpp")
  target_include_directories(leadline_test_main SYSTEM PUBLIC "${PROJECT_BINARY_DIR}/doctest")
  target_link_libraries(leadline_test_main PUBLIC leadline_options)
endif()

# Headers of C++ that most sources include, read once: for libraries, and for tests, which are no position independent code.
# Sources include what they use nevertheless, since clang-tidy compiles each without this. So does whoever builds with
# ccache, which remembers nothing of what was compiled with such headers.
function(leadline_headers name position_independent)
  file(WRITE "${PROJECT_BINARY_DIR}/headers/${name}.cpp" "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/headers/${name}.cpp")
  target_link_libraries(${name} PRIVATE leadline_options)
  target_precompile_headers(${name} PRIVATE ${ARGN} <algorithm> <array> <atomic> <cstdint> <cstring> <functional> <map> <memory>
    <mutex> <optional> <string> <string_view> <thread> <unordered_map> <vector>)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ${position_independent})
endfunction()

if(NOT LEADLINE_TIDY AND NOT CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
  leadline_headers(leadline_library_headers ON)
  if(LEADLINE_TESTS)
    leadline_headers(leadline_test_headers OFF <doctest/doctest.h>)
    target_include_directories(leadline_test_headers SYSTEM PRIVATE "${PROJECT_BINARY_DIR}/doctest")
  endif()
endif()

function(leadline_read_headers_once target headers)
  if(TARGET ${headers})
    target_precompile_headers(${target} REUSE_FROM ${headers})
  endif()
endfunction()

function(leadline_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;PYTHON_SOURCES;DEPENDS;TESTS;TESTS_OF_ONE_THREAD;TEST_DEPENDS")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "leadline_library(${name}): unknown argument ${ARG_UNPARSED_ARGUMENTS}.")
  endif()
  set(depends leadline_options)
  foreach(folder IN LISTS ARG_DEPENDS)
    list(APPEND depends leadline_${folder})
  endforeach()
  if(LEADLINE_PYTHON)
    list(APPEND ARG_SOURCES ${ARG_PYTHON_SOURCES})
  endif()

  set(target leadline_${name})
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    target_link_libraries(${target} PUBLIC ${depends})
    leadline_read_headers_once(${target} leadline_library_headers)
    set_source_files_properties(${ARG_PYTHON_SOURCES} PROPERTIES SKIP_PRECOMPILE_HEADERS ON) # Python.h has to be the first
    if(LEADLINE_PYTHON AND ARG_PYTHON_SOURCES)
      target_include_directories(${target} SYSTEM PUBLIC ${Python_INCLUDE_DIRS})
    endif()
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${depends})
  endif()

  if(NOT LEADLINE_SANITIZE STREQUAL "thread")
    list(APPEND ARG_TESTS ${ARG_TESTS_OF_ONE_THREAD})
  endif()
  if(LEADLINE_TESTS AND ARG_TESTS)
    add_executable(test_${name} ${ARG_TESTS})
    leadline_read_headers_once(test_${name} leadline_test_headers)
    set_target_properties(test_${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_link_libraries(test_${name} PRIVATE leadline_test_main ${target})
    foreach(folder IN LISTS ARG_TEST_DEPENDS)
      target_link_libraries(test_${name} PRIVATE leadline_${folder})
    endforeach()
    add_dependencies(leadline_tests test_${name})
    add_test(NAME ${name} COMMAND test_${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 600)
  endif()
endfunction()

function(leadline_python_module name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;DEPENDS")
  if(NOT LEADLINE_PYTHON)
    return()
  endif()
  nanobind_add_module(${name} NB_STATIC NOMINSIZE ${ARG_SOURCES})
  foreach(folder IN LISTS ARG_DEPENDS)
    target_link_libraries(${name} PRIVATE leadline_${folder})
  endforeach()
  install(TARGETS ${name} LIBRARY DESTINATION leadline)
endfunction()
