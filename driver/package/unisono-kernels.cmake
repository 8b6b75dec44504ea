# unisono_kernels(NAME [TOPOLOGY file] HOST source... PROGRAMS source... [RANKS n] [R n] [PACKET bytes]
#                 [PROTOCOL credits|eager] [INCLUDES folder...] [DEFINITIONS macro...] [ARGUMENTS word...])
#
# Kernels that were written for SMI, and their host. Each of PROGRAMS is a program of its own, named as its file;
# TOPOLOGY, a file as SMI has them, says which rank runs which. Targets:
#
#   NAME          the host and the libraries of kernels, for this machine's processors: NAME/NAME, NAME/PROGRAM.so
#   NAME-routes   routing tables of the topology, proven free of deadlock: NAME/smi-routes
#   NAME-report   prints what each program needs of hardware
#   NAME-rtl      builds them and runs them at simulated nodes of the transport in hardware, which are cabled as TOPOLOGY
#                 says, and made for PROGRAMS: their ports and collectives, R, PACKET and PROTOCOL. ARGUMENTS are the
#                 host's
#
# Sources are checked by `unisono kernel check` before they are compiled. The host includes smi_generated_host.h, which
# has SmiInit_PROGRAM for each program, SmiInit for that of a rank, and SmiLibrary(rank), the library to load.
#
# UNISONO_NODE_PORTS, if it is set, has nodes of so many ports instead that are made for no program: of 4 and 16 ports
# they are ready made. UNISONO_COMMAND is the command `unisono`, as a list of words; it is looked for in PATH.

function(unisono_kernels name)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "TOPOLOGY;RANKS;R;PACKET;PROTOCOL" "HOST;PROGRAMS;INCLUDES;DEFINITIONS;ARGUMENTS")
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

  _unisono_host(${name}-host ${folder} "${given_HOST}" ${header})
  set_target_properties(${name}-host PROPERTIES OUTPUT_NAME ${name})
  target_include_directories(${name}-host PRIVATE ${given_INCLUDES})
  target_compile_definitions(${name}-host PRIVATE ${given_DEFINITIONS})
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
    _unisono_rtl(${name}-rtl ${topology} ${name} "${descriptions}" ${folder}/${name} ${given_ARGUMENTS})
  else()
    _unisono_refused(${name}-rtl "unisono_kernels(${name}) has no TOPOLOGY: there are no cables to run it on")
    _unisono_refused(${name}-routes "unisono_kernels(${name}) has no TOPOLOGY: there is nothing to make routes for")
  endif()
endfunction()

# smi_target(TARGET TOPOLOGY HOST KERNELS RANKS [R [MAX_RANKS [RENDEZVOUS]]]): the call of SMI's own CMakeLists.txt, with
# its targets and folders: TARGET_host, a program in TARGET/, and TARGET_emulator, the libraries of kernels where hosts
# look for them, TARGET/emulator_RANK/PROGRAM.aocx. Of two programs rank 0 has the first, all others the second.
# TARGET_routes makes the tables in TARGET/smi-routes. TARGET_rtl runs the host, with the words of the variable
# TARGET_ARGUMENTS or else with `emulator`, at simulated nodes of the transport in hardware. Kernels find headers in the folder of CMakeLists.txt's build, and
# in those that the directory includes.
function(smi_target name topology host kernels ranks)
  set(reads 8)
  set(most 8)
  set(rendezvous ON)
  foreach(option reads most rendezvous)
    list(LENGTH ARGN more)
    if(more)
      list(POP_FRONT ARGN ${option})
    endif()
  endforeach()
  _unisono_command()
  if(rendezvous)
    set(shape --ranks ${most} --reads ${reads} --protocol credits)
    set(eager "")
  else()
    set(shape --ranks ${most} --reads ${reads} --protocol eager)
    set(eager --eager)
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(words -I ${CMAKE_CURRENT_BINARY_DIR})
  get_directory_property(included INCLUDE_DIRECTORIES)
  foreach(each IN LISTS included)
    list(APPEND words -I ${each})
  endforeach()
  set(descriptions "")
  set(described "")
  foreach(source IN LISTS kernels)
    cmake_path(GET source STEM LAST_ONLY program)
    list(APPEND descriptions ${folder}/${program}.json)
    list(APPEND described --program ${folder}/${program}.json)
  endforeach()
  add_custom_command(
    OUTPUT ${folder}/smi_generated_host.h ${folder}/smi_generated_host.c ${descriptions}
    COMMAND ${UNISONO_COMMAND} kernel generate ${words} ${shape} --topology ${topology} -o ${folder} ${kernels}
    DEPENDS ${kernels} ${topology} COMMENT "Descriptions of ${name}" VERBATIM)
  _unisono_host(${name}_host ${folder} "${host}" ${folder}/smi_generated_host.c)

  set(libraries "")
  math(EXPR last "${ranks} - 1")
  list(LENGTH kernels programs)
  foreach(rank RANGE ${last})
    set(at 0)
    if(programs GREATER 1 AND rank GREATER 0)
      set(at 1)
    endif()
    list(GET kernels ${at} source)
    cmake_path(GET source STEM LAST_ONLY program)
    set(library ${folder}/emulator_${rank}/${program}.aocx)
    add_custom_command(
      OUTPUT ${library} COMMAND ${UNISONO_COMMAND} kernel build ${words} ${source} -o ${library}
      DEPENDS ${source} COMMENT "Kernels of ${name}, rank ${rank}" VERBATIM)
    list(APPEND libraries ${library})
  endforeach()
  add_custom_target(${name}_emulator DEPENDS ${libraries})
  add_custom_target(
    ${name}_routes COMMAND ${UNISONO_COMMAND} route ${topology} -o ${folder}/smi-routes ${described} ${eager}
    DEPENDS ${descriptions} ${topology} VERBATIM)
  set(arguments emulator)
  if(DEFINED ${name}_ARGUMENTS)
    set(arguments ${${name}_ARGUMENTS})
  endif()
  _unisono_rtl(${name}_rtl ${topology} "${name}_host;${name}_emulator" "${descriptions}" ${folder}/${name}_host
               ${arguments})
endfunction()

# A target that runs a program, with a rank for each node of a topology.
function(_unisono_rtl target topology needs descriptions program)
  cmake_path(ABSOLUTE_PATH topology BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT EXISTS ${topology})
    _unisono_refused(${target} "${target}: there was no topology ${topology} when CMake ran; run it again")
    return()
  endif()
  file(READ ${topology} text)
  string(JSON ranks ERROR_VARIABLE wrong LENGTH "${text}" fpgas)
  if(wrong)
    _unisono_refused(${target} "${topology}: ${wrong}")
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${topology})
  cmake_path(GET program PARENT_PATH folder)  # where hosts of SMI look for their kernels
  set(node "")
  if(UNISONO_NODE_PORTS)
    set(node --node-ports ${UNISONO_NODE_PORTS})
  else()
    foreach(description IN LISTS descriptions)  # beside SMI's metadata, what hardware needs to know
      cmake_path(REPLACE_EXTENSION description LAST_ONLY endpoints.json)
      list(APPEND node --endpoints ${description})
    endforeach()
  endif()
  add_custom_target(${target} COMMAND ${UNISONO_COMMAND} run -n ${ranks} --platform rtl --cables ${topology}
                    ${node} ${program} ${ARGN}
                    DEPENDS ${descriptions} WORKING_DIRECTORY ${folder} USES_TERMINAL VERBATIM)
  add_dependencies(${target} ${needs})
endfunction()

function(_unisono_host target folder sources generated)
  add_executable(${target} ${sources} ${generated})
  set_source_files_properties(${generated} PROPERTIES HEADER_FILE_ONLY ON)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${folder})
  get_target_property(headers unisono::unisono INTERFACE_INCLUDE_DIRECTORIES)
  list(TRANSFORM headers APPEND /unisono/dialect)
  cmake_path(GET generated PARENT_PATH made)
  target_include_directories(${target} BEFORE PRIVATE ${made} ${headers})
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
  # Without PRIVATE: projects of SMI link more in this form, and CMake takes one of them for a target.
  target_link_libraries(${target} unisono::unisono Threads::Threads ${CMAKE_DL_LIBS})
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
