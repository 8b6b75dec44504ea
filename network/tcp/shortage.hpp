// What this process or its host has run out of, if that is why a socket could not be had or connected.
#pragma once

#include <sys/socket.h>

#include <string>

namespace unisono::tcp {

/// What is lacking here, and what helps, in a clause that begins with a small letter: "no port of this host is free:
/// ...". `error` is what a call of the system has failed with. Empty if it says nothing of this host.
std::string shortage(int error);
/// The same of a connection to `to` that could not be begun: there the kernel has one number for a want of ports and a
/// want of a way, which this tells apart.
std::string shortage(int error, const sockaddr& to, socklen_t bytes);
/// The same of a socket that was to get any port, and got none.
std::string shortage_of_ports(int error);

}  // namespace unisono::tcp
