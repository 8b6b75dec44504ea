# unisono_kernels(NAME [TOPOLOGY file] HOST source... PROGRAMS source... [RANKS n] [R n] [PACKET bytes]
#                 [PROTOCOL credits|eager] [INCLUDES folder...] [DEFINITIONS macro...])
#
# Kernels that were written for SMI, and their host. Each of PROGRAMS is a program of its own, named as its file;
# TOPOLOGY, a file as SMI has them, says which rank runs which. Targets:
#
#   NAME          the host and the libraries of kernels, for this machine's processors: NAME/NAME, NAME/PROGRAM.so
#   NAME-routes   routing tables of the topology, proven free of deadlock: NAME/smi-routes
#   NAME-report   prints what each program needs of hardware
#   NAME-rtl      refused: the transport in hardware is not there yet
#
# Sources are checked by `unisono kernel check` before they are compiled. The host includes smi_generated_host.h, which
# has SmiInit_PROGRAM for each program, SmiInit for that of a rank, and SmiLibrary(rank), the library to load.
#
# UNISONO_COMMAND is the command `unisono`, as a list of words; it is looked for in PATH.

function(unisono_kernels name)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "TOPOLOGY;RANKS;R;PACKET;PROTOCOL" "HOST;PROGRAMS;INCLUDES;DEFINITIONS")
  if(given_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unisono_kernels(${name}): `${given_UNPARSED_ARGUMENTS}` is not understood")
  endif()
  foreach(needed HOST PROGRAMS)
    if(NOT given_${needed})
      message(FATAL_ERROR "unisono_kernels(${name}): ${needed} names no source")
    endif()
  endforeach()
  _unisono_command()
  set(shape "")
  foreach(option RANKS:--ranks R:--reads PACKET:--packet PROTOCOL:--protocol)
    string(REPLACE ":" ";" option ${option})
    list(POP_FRONT option key)
    if(DEFINED given_${key})
      list(APPEND shape ${option} ${given_${key}})
    endif()
  endforeach()
  set(words "")
  foreach(folder IN LISTS given_INCLUDES)
    cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    list(APPEND words -I ${folder})
  endforeach()
  foreach(macro IN LISTS given_DEFINITIONS)
    list(APPEND words -D ${macro})
  endforeach()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(sources "")
  set(descriptions "")
  set(libraries "")
  foreach(source IN LISTS given_PROGRAMS)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    if(NOT EXISTS ${source})
      message(FATAL_ERROR "unisono_kernels(${name}): there is no source ${source}")
    endif()
    cmake_path(GET source STEM LAST_ONLY program)
    list(APPEND sources ${source})
    list(APPEND descriptions ${folder}/generated/${program}.json)
    add_custom_command(
      OUTPUT ${folder}/${program}.so
      COMMAND ${UNISONO_COMMAND} kernel check ${words} ${source}
      COMMAND ${UNISONO_COMMAND} kernel build ${words} ${source} -o ${folder}/${program}.so
      DEPENDS ${source} COMMENT "Kernels of ${program}" VERBATIM)
    list(APPEND libraries ${folder}/${program}.so)
  endforeach()

  set(mapped "")
  if(given_TOPOLOGY)
    set(topology ${given_TOPOLOGY})
    cmake_path(ABSOLUTE_PATH topology BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    set(mapped --topology ${topology})
  endif()
  set(header ${folder}/generated/smi_generated_host.h)
  add_custom_command(
    OUTPUT ${header} ${folder}/generated/smi_generated_host.c ${folder}/generated/report.txt ${descriptions}
    COMMAND ${UNISONO_COMMAND} kernel generate ${words} ${shape} ${mapped} -o ${folder}/generated ${sources}
    DEPENDS ${sources} ${topology} COMMENT "Descriptions of ${name}" VERBATIM)

  add_executable(${name}-host ${given_HOST} ${header})
  set_target_properties(${name}-host PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${folder})
  get_target_property(headers unisono::unisono INTERFACE_INCLUDE_DIRECTORIES)
  list(TRANSFORM headers APPEND /unisono/dialect)
  target_include_directories(${name}-host BEFORE PRIVATE ${folder}/generated ${headers} ${given_INCLUDES})
  target_compile_definitions(${name}-host PRIVATE ${given_DEFINITIONS})
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
  target_link_libraries(${name}-host PRIVATE unisono::unisono Threads::Threads ${CMAKE_DL_LIBS})
  add_custom_target(${name} ALL DEPENDS ${libraries})
  add_dependencies(${name} ${name}-host)

  add_custom_target(${name}-report COMMAND ${CMAKE_COMMAND} -E cat ${folder}/generated/report.txt
                    DEPENDS ${folder}/generated/report.txt VERBATIM)
  if(given_TOPOLOGY)
    set(route ${UNISONO_COMMAND} route ${topology} -o ${folder}/smi-routes)
    foreach(description IN LISTS descriptions)
      list(APPEND route --program ${description})
    endforeach()
    if(given_PROTOCOL STREQUAL eager)
      list(APPEND route --eager)
    endif()
    add_custom_target(${name}-routes COMMAND ${route} DEPENDS ${descriptions} ${topology} VERBATIM)
  else()
    _unisono_refused(${name}-routes "unisono_kernels(${name}) has no TOPOLOGY: there is nothing to make routes for")
  endif()
  _unisono_refused(${name}-rtl "${name}-rtl: the transport of SMI in hardware is not there yet; build ${name} to run the kernels natively")
endfunction()

function(_unisono_refused target sentence)
  add_custom_target(${target} COMMAND ${CMAKE_COMMAND} -E echo "${sentence}" COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endfunction()

# A macro: what it finds is known to who calls it.
macro(_unisono_command)
  if(NOT UNISONO_COMMAND)
    find_program(UNISONO_COMMAND unisono DOC "The command of Unisono's Python package")
  endif()
  if(NOT UNISONO_COMMAND)
    message(FATAL_ERROR "unisono_kernels: there is no command `unisono`, which compiles kernels; install the Python package unisono[kernels], or set UNISONO_COMMAND")
  endif()
endmacro()
