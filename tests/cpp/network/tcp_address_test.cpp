// Addresses as text, the choice among a host's own ones, and cards.
#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "network/network.hpp"
#include "network/tcp/card.hpp"
#include "network/tcp/interfaces.hpp"

namespace unisono::tcp {
namespace {

Address address(const std::string& text) {
  const auto result = parse_address(text);
  if (!result) throw std::runtime_error("no address: " + text);
  return *result;
}

TEST(TcpAddress, TextIsReadAsWritten) {
  for (const char* text :
       {"10.0.0.1:4711", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80", "[fe80::1%eth0]:4711", "[2001:db8::7]:1"}) {
    EXPECT_EQ(text_of(address(text)), text);
  }
  EXPECT_EQ(text_of(address("10.0.0.1")), "10.0.0.1:0");
  EXPECT_EQ(text_of(address("fe80::1%wlan0")), "[fe80::1%wlan0]:0");
  EXPECT_EQ(text_of(address("[::1]")), "[::1]:0");
  EXPECT_EQ(text_without_port(address("[fe80::2%eth1]:9")), "fe80::2%eth1");
}

TEST(TcpAddress, WhatIsNoAddressIsNotRead) {
  for (const char* text : {"", ":", "10.0.0:1", "10.0.0.1:", "10.0.0.1:65536", "10.0.0.1:-1", "10.0.0.1:1x", "host:1",
                           "[::1", "[::1]x", "[::1]:", "[10.0.0.1]:1", "::1%", "::1%eth0", "fe80::1%0123456789abcdef",
                           "1.2.3.4%eth0", "256.0.0.1", "[fe80::1%]:1"}) {
    EXPECT_FALSE(parse_address(text)) << text;
  }
}

TEST(TcpAddress, SystemAddressesComeBack) {
  for (const char* text : {"10.1.2.3:4711", "[2001:db8::7]:1", "[::1]:65535"}) {
    EXPECT_EQ(address_of(system_address(address(text), 0).storage), address(text));
  }
  EXPECT_EQ(text_of(*address_of(system_address(address("[::ffff:10.0.0.9]:5"), 0).storage)), "10.0.0.9:5")
      << "IPv4 in the form of IPv6 is IPv4";
}

TEST(TcpAddress, KindsAreKnown) {
  EXPECT_TRUE(address("127.3.2.1").loopback());
  EXPECT_TRUE(address("::1").loopback());
  EXPECT_FALSE(address("128.0.0.1").loopback());
  EXPECT_FALSE(address("::2").loopback());
  EXPECT_TRUE(address("fe80::1").link_local());
  EXPECT_TRUE(address("febf::1").link_local());
  EXPECT_FALSE(address("fec0::1").link_local());
  EXPECT_FALSE(address("169.254.0.1").link_local()) << "needs no interface";
}

/// A host with two interfaces and a loopback.
std::vector<OwnAddress> host() {
  return {{"lo", address("127.0.0.1")},      {"lo", address("::1")},        {"eth0", address("10.0.0.5")},
          {"eth0", address("fe80::5%eth0")}, {"ib0", address("fd00:1::5")}, {"ib0", address("192.168.7.5")}};
}

std::string chosen(const std::string& list) {
  std::string text;
  for (const OwnAddress& own : chosen_by(list, host())) text += text_without_port(own.address) + " ";
  return text;
}

TEST(TcpInterfaces, ListsNameInterfacesAndNetworks) {
  EXPECT_EQ(chosen(""), "127.0.0.1 ::1 10.0.0.5 fe80::5%eth0 fd00:1::5 192.168.7.5 ");
  EXPECT_EQ(chosen("eth0"), "10.0.0.5 fe80::5%eth0 ");
  EXPECT_EQ(chosen("!eth0"), "127.0.0.1 ::1 fd00:1::5 192.168.7.5 ");
  EXPECT_EQ(chosen("!lo, !eth0"), "fd00:1::5 192.168.7.5 ");
  EXPECT_EQ(chosen("10.0.0.0/8"), "10.0.0.5 ");
  EXPECT_EQ(chosen("fd00::/16,lo"), "127.0.0.1 ::1 fd00:1::5 ");
  EXPECT_EQ(chosen("ib0,!192.168.0.0/16"), "fd00:1::5 ");
  EXPECT_EQ(chosen("10.0.0.5"), "10.0.0.5 ") << "an address alone is a network of one";
  EXPECT_EQ(chosen("10.0.0.4/31"), "10.0.0.5 ");
  EXPECT_EQ(chosen("0.0.0.0/0"), "127.0.0.1 10.0.0.5 192.168.7.5 ");
}

TEST(TcpInterfaces, WhatFitsNothingIsRefusedWithWhatThereIs) {
  for (const char* list : {"eth1", "lo,eth1", "!eth1", "11.0.0.0/8", "10.0.0.6/31", "lo,!lo", "10.0.0.0/33",
                           "10.0.0.0/", "eth0/8", "10.0.0.0/x"}) {
    try {
      chosen(list);
      ADD_FAILURE() << list << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBootstrap);
      const std::string text = error.what();
      EXPECT_TRUE(text.find("ib0 (192.168.7.5)") != text.npos || text.find("is no network") != text.npos) << text;
    }
  }
}

std::string ordered(const Address* route) {
  std::string text;
  for (const OwnAddress& own : in_order(host(), route)) text += text_without_port(own.address) + " ";
  return text;
}

TEST(TcpInterfaces, TheWayToTheRendezvousComesFirst) {
  EXPECT_EQ(ordered(nullptr), "10.0.0.5 192.168.7.5 fd00:1::5 fe80::5%eth0 127.0.0.1 ::1 ");
  const Address fabric = address("192.168.7.5");
  EXPECT_EQ(ordered(&fabric), "192.168.7.5 fd00:1::5 10.0.0.5 fe80::5%eth0 127.0.0.1 ::1 ");
  const Address unknown = address("9.9.9.9");
  EXPECT_EQ(ordered(&unknown), ordered(nullptr));
  const Address loopback = address("127.0.0.1");
  EXPECT_TRUE(ordered(&loopback).starts_with("127.0.0.1 ")) << ordered(&loopback);
}

TEST(TcpInterfaces, TheRouteIsFoundWithoutSending) {
  EXPECT_EQ(route_to(address("127.0.0.1:4711")), address("127.0.0.1"));
  const auto own = own_addresses();
  EXPECT_NE(std::find(own.begin(), own.end(), OwnAddress{"lo", address("127.0.0.1")}), own.end());
}

Card card_of(std::initializer_list<const char*> texts) {
  Card card;
  card.port = 4711;
  for (const char* text : texts) {
    card.addresses.push_back(address(text));
    card.addresses.back().port = 4711;
  }
  return card;
}

TEST(TcpCard, ComesBackAsItWas) {
  for (const Card& card : {card_of({"10.0.0.1"}), card_of({"::1", "127.0.0.1"}),
                           card_of({"fe80::1%eth0", "fd00::1", "10.0.0.1", "fe80::1%a"})}) {
    EXPECT_EQ(decode_card(encode_card(card)), card);
  }
}

TEST(TcpCard, LeavesOutWhatDoesNotFit) {
  Card card = card_of({});
  for (int i = 0; i < 40; ++i) {
    card.addresses.push_back(address("fe80::1%interface-name"));
    card.addresses.back().port = 4711;
  }
  const auto bytes = encode_card(card);
  EXPECT_LE(bytes.size(), Network::kMostCardBytes);
  const Card read = decode_card(bytes);
  EXPECT_GE(read.addresses.size(), 6U);
  EXPECT_EQ(read.addresses.front(), card.addresses.front());
}

TEST(TcpCard, WhatIsWrongIsRefused) {
  const auto good = encode_card(card_of({"10.0.0.1", "fe80::1%eth0"}));
  ASSERT_NO_THROW(decode_card(good));
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_THROW(decode_card(std::span(good).first(length)), Error) << length;
  }
  const auto wrong = [&](std::size_t at, std::uint8_t value) {
    auto bytes = good;
    bytes[at] = std::byte{value};
    EXPECT_THROW(decode_card(bytes), Error) << "byte " << at;
  };
  wrong(0, 2);     // version
  wrong(1, 0);     // no address
  wrong(1, 1);     // goes on
  wrong(1, 13);    // too many
  wrong(4, 5);     // kind of the first
  wrong(9, 6);     // a link-local address without an interface
  wrong(26, 0);    // no name
  wrong(26, 200);  // a name that claims more than there is
  wrong(27, 7);    // a name that cannot be printed
  auto longer = good;
  longer.push_back({});
  EXPECT_THROW(decode_card(longer), Error);
  auto no_port = good;
  no_port[2] = no_port[3] = {};
  EXPECT_THROW(decode_card(no_port), Error);
}

}  // namespace
}  // namespace unisono::tcp
