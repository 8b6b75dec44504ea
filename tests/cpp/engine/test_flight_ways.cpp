// What a report says of the ways between the ranks of several hosts.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/flight_report.hpp"

namespace unisono::test {
namespace {

using cclo::ObservedEndpoint;
using cclo::ways_report;

/// A rank whose records are in sight, or not.
ObservedEndpoint rank_of(std::uint32_t rank, std::uint32_t of, const char* network, const CommunicatorRecord* records) {
  ObservedEndpoint endpoint;
  endpoint.name = "pid " + std::to_string(100 + rank);
  endpoint.records = records;
  endpoint.rank = rank;
  endpoint.of = of;
  endpoint.network = network;
  return endpoint;
}

class FlightWays : public testing::Test {
 protected:
  std::vector<CommunicatorRecord> records_ = std::vector<CommunicatorRecord>(kRecordedCommunicators);
};

TEST_F(FlightWays, OneHostNeedsNoWords) {
  EXPECT_EQ(ways_report({}), "");
  const std::vector<ObservedEndpoint> all(3, ObservedEndpoint{"pid 1", "", records_.data()});
  EXPECT_EQ(ways_report(all), "");
  EXPECT_EQ(flight_report(all, cclo::ReportDetail::kNow, {}), "no communicators\n");
}

TEST_F(FlightWays, WhatTheMemoryOfAHostShows) {
  const std::vector<ObservedEndpoint> all{rank_of(2, 6, "tcp", records_.data()), rank_of(0, 6, "tcp", records_.data()),
                                          rank_of(1, 6, "tcp", records_.data()), rank_of(5, 6, "tcp", records_.data())};
  const std::string text =
      "ranks 0 to 2, 5 of 6 are on this host and share memory\ntcp carries data to and from the other ranks\n";
  EXPECT_EQ(ways_report(all), text);
  EXPECT_EQ(flight_report(all, cclo::ReportDetail::kNow, {}), text + "no communicators\n");
  // Its number in the whole job, the job's ranks, and the network.
  const std::string table = cclo::flight_table(all, {});
  EXPECT_EQ(table.substr(0, table.find('\n')), "pid 102\t\t0\t0\thas called nothing yet\t2\t6\ttcp");
}

TEST_F(FlightWays, WhatARankSees) {
  const std::vector<ObservedEndpoint> all{rank_of(0, 4, "shm", records_.data()), rank_of(1, 4, "tcp", nullptr),
                                          rank_of(2, 4, "udp", nullptr), rank_of(3, 4, "tcp", nullptr)};
  EXPECT_EQ(
      ways_report(all),
      "rank 0 of 4 is on this host\ntcp carries data to and from ranks 1, 3\nudp carries data to and from rank 2\n");
}

TEST_F(FlightWays, WhoHasRefusedStrangers) {
  std::vector<NativeCounters> counters(2);
  std::vector<ObservedEndpoint> all{rank_of(0, 3, "tcp", records_.data()), rank_of(1, 3, "tcp", records_.data()),
                                    rank_of(2, 3, "tcp", nullptr)};
  all[0].counters = &counters[0];
  all[1].counters = &counters[1];
  EXPECT_EQ(cclo::strangers_report(all), "");
  constexpr auto kPosition = static_cast<std::size_t>(NativeCounter::kStrangersRefused);
  counters[1].words[kPosition] = 12;
  const std::string text = "rank 1 has refused 12 connections or datagrams that did not prove to be of the job\n";
  EXPECT_EQ(cclo::strangers_report(all), text);
  EXPECT_NE(flight_report(all, cclo::ReportDetail::kNow, {}).find(text), std::string::npos);
  counters[0].words[kPosition] = 1;
  EXPECT_EQ(cclo::strangers_report(all),
            "rank 0 has refused 1 connection or datagram that did not prove to be of the job\n" + text);
}

}  // namespace
}  // namespace unisono::test
