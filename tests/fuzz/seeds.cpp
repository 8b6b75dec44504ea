// fuzz_seeds FOLDER: writes what the fuzz targets begin with: sound input of every kind, made by the library as the
// tests make theirs. FOLDER/<target>/<name>.
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "collectives/record.hpp"
#include "collectives/tuning.hpp"
#include "core/error.hpp"
#include "core/header.hpp"
#include "core/program_file.hpp"
#include "cost/tuning_file.hpp"
#include "driver/objects.hpp"
#include "engine/tree_word.hpp"
#include "network/ofi/card.hpp"
#include "network/ofi/frame.hpp"
#include "network/ofi/handshake.hpp"
#include "network/tcp/arrivals.hpp"
#include "network/tcp/card.hpp"
#include "network/tcp/handshake.hpp"
#include "network/tcp/tls.hpp"
#include "network/udp/handshake.hpp"
#include "platform/join/frames.hpp"
#include "platform/join/meeting_file.hpp"
#include "platform/join/pmi.hpp"
#include "switch/control.hpp"
#include "switch/frame.hpp"
#include "switch/handler/binary.hpp"
#include "switch/handler/operator.hpp"
#include "switch/handler_control.hpp"
#include "tests/cpp/network/wire.hpp"
#include "tests/cpp/switch/handler/words.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)

namespace {

/// Bytes in the order in which fuzz::Input takes them.
class Bytes {
 public:
  template <class T>
  Bytes& put(const T& value) {
    const auto* begin = reinterpret_cast<const char*>(&value);
    text.append(begin, sizeof value);
    return *this;
  }
  Bytes& put_bytes(std::span<const std::byte> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return *this;
  }
  /// A number that the call target takes as it is: see its `number`.
  Bytes& small(std::uint32_t value, std::uint32_t most) {
    while (value < 8) value += most + 1;
    return put(static_cast<std::uint8_t>(value));
  }
  std::string text;
};

class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void add(const std::string& target, const std::string& text) {
    const auto place = folder_ / target;
    std::filesystem::create_directories(place);
    std::ofstream file(place / ("seed-" + std::to_string(count_++)), std::ios::binary);
    file << text;
    if (!file.flush()) throw std::runtime_error("cannot write to " + place.string());
  }

 private:
  std::filesystem::path folder_;
  int count_ = 0;
};

void headers(Corpus& corpus) {
  for (std::uint8_t type = 0; is_known(static_cast<MessageType>(type)) || type < 2; ++type) {
    Header header = make_header(static_cast<MessageType>(type));
    header.dtype = Datatype::kFp32;
    header.first = header.last = true;
    header.communicator = 3;
    header.source = 1;
    header.destination = 2;
    header.sequence = 77;
    header.segment_bytes = header.message_bytes = 64;
    header.session_sequence = 5;
    seal(header);
    const HeaderContext context{1, 2, 3, 0, 5, 77, 0, 64};
    const auto compressed = compress_connection(header, context);
    Bytes bytes;
    bytes.put(encode(header)).put(std::uint8_t{1});
    bytes.put(compressed ? encode(*compressed) : std::array<std::uint64_t, 4>{});
    bytes.put(1U).put(3U).put(77U).put(0U).put(std::array<std::uint64_t, 2>{64, 1});
    corpus.add("header", bytes.text);
  }
}

std::vector<std::uint8_t> call_of(std::uint32_t collective) {
  Bytes bytes;
  bytes.small(collective, 33).small(2, 21).small(collective == 8 || collective == 9 || collective == 10 ? 1 : 0, 14);
  bytes.small(0, 1).small(0, 1).small(0, 1).small(8, 60).small(0, 8);
  bytes.put(std::uint16_t{256}).put(std::uint16_t{256}).put(std::uint8_t{0x15});
  for (int i = 0; i < 4; ++i) bytes.small(i % 2 == 0 ? 8 : 0, 60);
  return {bytes.text.begin(), bytes.text.end()};
}

void programs(Corpus& corpus) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const std::uint32_t size : {1U, 2U, 3U}) {
      ProgramFile file;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        Call call;
        call.collective = algorithm.collective;
        call.func = Func::kSum;
        call.dtype = Datatype::kInt32;
        call.direct = algorithm.direct;
        call.rank = rank;
        call.size = size;
        call.count = 12;
        if (algorithm.admits != nullptr && !algorithm.admits(call)) break;
        file.programs.push_back(record(algorithm, call));
        const Program& program = file.programs.back();
        file.region_bytes.push_back({256, 256, program.scratch_bytes, program.params_bytes, 256});
      }
      if (file.programs.size() != size) continue;
      std::vector<std::byte> bytes;
      try {
        bytes = write_program_file(file);
      } catch (const Error&) {
        continue;  // a call that has no such program
      }
      corpus.add("program", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      if (size == 1) {
        const auto call = call_of(31);
        corpus.add("call", Bytes().put_bytes(std::as_bytes(std::span(call))).put_bytes(bytes).text);
      }
      const Program& program = file.programs.back();
      Bytes moves;
      moves.put(size - 1).put(static_cast<std::uint8_t>(program.params_bytes / 8));
      moves.put(static_cast<std::uint32_t>(std::min<std::size_t>(12, program.pool.size())));
      for (std::size_t i = 0; i < std::min<std::size_t>(12, program.pool.size()); ++i) {
        moves.put(static_cast<std::uint16_t>(program.pool[i]));
      }
      for (const Move& move : program.moves) moves.put(encode(move));
      corpus.add("move", moves.text);
    }
  }
}

void texts(Corpus& corpus) {
  cost::TuningFile file;
  file.processor = "a \"processor\" of Zen 4";
  corpus.add("tuning", cost::write_tuning(file));
  const auto rules = default_rules();
  file.rules.assign(rules.begin(), rules.end());
  corpus.add("tuning", cost::write_tuning(file));
  corpus.add("tuning", R"({"unisono_tuning": 1, "rules": [[], {}, null, true, -1.5e3, "\u00e4\n"]})");
  corpus.add("environment", "4\n3\nunisono-job\n0123456789abcdef0123456789abcdef\n2.5");
  corpus.add("environment", "2\n2\nname\nshort\n-1");
  corpus.add("environment", "4\n3\n\n0123456789abcdef0123456789abcdef\n\nunix://job-7");
  corpus.add("environment", "4\n0\n\n0123456789abcdef\n\ntcp://10.0.0.1:1,[fe80::1%eth0]:9\na:2,fe80::1:1,a:1");
  corpus.add("environment", "4\n0\n\n\n\nfile:///home/me/job");
  corpus.add("environment",
             "allreduce=ring,bcast=binomial:64K-, bcast=knomial:8,gather=knomial:3:-2K, "
             "reduce=linear:4K-1M,allgather=ring:-2G");
}

void messages(Corpus& corpus) {
  const auto capabilities = driver::pack_capabilities(NativeEngine::capabilities_of({}));
  corpus.add("capabilities", std::string(1, 1) + std::string(capabilities.size(), 0));
  corpus.add("capabilities",
             Bytes().put(std::uint8_t{2}).put_bytes(capabilities).put(std::uint8_t{2}).put_bytes(capabilities).text);
  const join::FrameHead head{join::kFrameMagic, join::kProtocol, join::FrameKind::kRefused, 4};
  corpus.add("rendezvous", Bytes().put(std::uint8_t{3}).put(std::uint8_t{40}).put(head).put(1234).text);
  for (const auto kind : std::to_array<std::uint8_t>({0, 7, 15, 103, 127})) {
    corpus.add("rendezvous",
               Bytes().put(std::uint8_t{0}).put(kind).put(std::array<std::uint32_t, 12>{}).put(head).text);
  }
  for (const auto kind : std::to_array<std::uint8_t>({1, 9, 33, 41, 65, 161})) {
    Bytes bytes;
    bytes.put(std::uint8_t{1}).put(kind).put(std::array<std::byte, 128>{}).put(1U << 22U).put(std::uint8_t{8});
    corpus.add("rendezvous", bytes.put(std::uint64_t{0}).put(head).text);
  }
  const std::string begin =
      "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
      "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\ncmd=my_kvsname kvsname=kvs_7\n"
      "cmd=put_result rc=0 msg=success\ncmd=barrier_out\ncmd=get_result rc=0 msg=success value=00ff\n"
      "cmd=finalize_ack\n";
  corpus.add("pmi", std::string(1, '\0') + "cmd=get_result rc=-1 msg=key a not found value=unknown\n");
  corpus.add("pmi", std::string(1, '\0') + "00ff7a");
  corpus.add("pmi", "\1cmd=initack rc=0\ncmd=set size=4\ncmd=set rank=1\ncmd=set debug=0\n" + begin);
  corpus.add("pmi", "\2" + begin);
  corpus.add("pmi", "\3cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n" +
                        join::pmi_message("fullinit-response", {{"rank", "1"}, {"size", "4"}, {"rc", "0"}}) +
                        join::pmi_message("job-getid-response", {{"jobid", "7"}, {"rc", "0"}}) +
                        join::pmi_message("info-getnodeattr-response", {{"found", "FALSE"}, {"rc", "0"}}) +
                        join::pmi_message("kvs-put-response", {{"rc", "0"}}) +
                        join::pmi_message("kvs-fence-response", {{"rc", "0"}}) +
                        join::pmi_message("kvs-get-response", {{"found", "TRUE"}, {"value", "00ff"}, {"rc", "0"}}) +
                        join::pmi_message("finalize-response", {{"rc", "0"}}));
  corpus.add("pmi", "\4cmd=kvs-get-response;found=TRUE;value=a;;b;rc=0;");
  corpus.add("meeting", join::Meeting{"node", 7, 4, std::string(64, 'a'), {{"10.0.0.1", 4711}, {"fe80::1", 1}}}.text());
  for (const bool differ : {false, true}) {
    cclo::TreeWord word;
    word.kind = cclo::TreeWord::Kind::kPropose;
    word.ballot = {3, 2};
    word.ended = std::vector<bool>(16, differ);
    word.answer = {~std::uint64_t{6}, 7, {true, false, true}, differ, {1, 2}, {3, 4}};
    corpus.add("tree_word", "\3" + word.encoded(16));
  }
  Bytes ring;
  for (std::uint32_t sequence = 0; sequence < 6; ++sequence) {
    Header header = make_header(MessageType::kEager);
    header.segment_bytes = header.message_bytes = 200;
    header.session_sequence = sequence;
    ring.put(std::uint8_t{sequence == 3 ? std::uint8_t{12} : std::uint8_t{4}}).put(encode(header)).put(5U);
  }
  corpus.add("ring", ring.text);
  for (std::uint32_t collective = 0; collective <= 21; ++collective) {
    const auto call = call_of(collective);
    corpus.add("call", {call.begin(), call.end()});
  }
  CallDescriptor call;
  call.collective = Collective::kAllreduce;
  call.func = Func::kSum;
  call.dtype = Datatype::kFp32;
  call.count = 100;
  corpus.add("descriptor", Bytes().put(encode(call)).put(std::array<std::uint64_t, 8>{}).text);
}

/// Targets whose input is a choice of acts: any bytes are sound.
void acts(Corpus& corpus) {
  std::mt19937 random(5);  // NOLINT(*-msc51-cpp): the same every time
  for (const char* target : {"engine", "device", "lanes", "lane_runs", "messages"}) {
    for (int i = 0; i < 40; ++i) {
      std::string text(static_cast<std::size_t>(100 + 30 * i), 0);
      for (char& c : text) c = static_cast<char>(random());
      corpus.add(target, text);
    }
  }
}

void tcp_connections(Corpus& corpus) {
  using namespace tcp;  // NOLINT(google-build-using-namespace)
  // As the targets take them: what is said to an acceptor, to a connector, a card, an address.
  // Of another job than that of the target: what a stranger says proves nothing.
  const JobKey key{std::byte{3}, std::byte{5}};
  Connector connector(key, {0, 1, 4}, {});
  Acceptor acceptor(key, {1, 0, 4}, {});
  const auto pieces = [](Bytes& bytes, std::span<const std::byte> message) -> Bytes& {
    return bytes.put(static_cast<std::uint8_t>(message.size() - 1)).put_bytes(message);
  };
  Bytes hello;
  hello.put(std::uint8_t{0}).put(Nonce{});
  corpus.add("tcp_handshake", pieces(hello, connector.output()).text);
  std::memcpy(acceptor.wanted().data(), connector.output().data(), sizeof(Hello));
  acceptor.got(sizeof(Hello));
  Bytes challenge;
  challenge.put(std::uint8_t{1}).put(Nonce{});
  corpus.add("tcp_handshake", pieces(challenge, acceptor.output()).text);
  const Verdict verdict{{'U', 'N', 'I', 'V'}, Ruling::kAccepted, 4};
  Bytes ruled;
  ruled.put(std::uint8_t{1 + 8}).put(Nonce{});
  corpus.add("tcp_handshake", pieces(ruled, std::as_bytes(std::span(&verdict, 1))).text);
  Card card{4711, {}};
  for (const char* text : {"10.0.0.1:4711", "[fd00::1]:4711", "[fe80::1%eth0]:4711"}) {
    card.addresses.push_back(*parse_address(text));
    corpus.add("tcp_handshake", Bytes().put(std::uint8_t{3}).text + text);
  }
  corpus.add("tcp_handshake", Bytes().put(std::uint8_t{2}).put_bytes(encode_card(card)).text);
  // Frames of both lanes, some in parts, taken now and then, and a farewell.
  Bytes frames;
  for (int i = 0; i < 12; ++i) {
    Header header = make_header(MessageType::kEager);
    header.dtype = Datatype::kByte;
    header.segment_bytes = static_cast<std::uint32_t>(50 * i);
    frames.put(static_cast<std::uint8_t>(i % 3 == 0 ? 1 + 4 : 1 + 8)).put(encode(header));
    if (i % 4 == 3) frames.put(std::uint8_t{3 + 0x20}).put(std::uint8_t{3 + 4 + 0x20});
  }
  frames.put(std::uint8_t{3 + 0xc0}).put(std::uint8_t{3 + 4 + 0xc0});
  corpus.add("tcp_frames", frames.text);
}

void tcp_encrypted(Corpus& corpus) {
  using namespace tcp;  // NOLINT(google-build-using-namespace)
  // What both ends say first, as the target takes it, in pieces of 256 bytes.
  test::Wire wire;
  Tls client(TlsEnd::kClient, {}, wire.end(0));
  Tls server(TlsEnd::kServer, {}, wire.end(1));
  for (int i = 0; i < 4; ++i) {
    client.shake_hands();
    server.shake_hands();
    wire.pump();
  }
  for (const std::size_t from : {0U, 1U}) {
    Bytes words;
    words.put(static_cast<std::uint8_t>(from));
    std::span<const std::byte> rest = wire.from(from).seen;
    while (!rest.empty()) {
      const auto piece = rest.first(std::min<std::size_t>(rest.size(), 256));
      words.put(std::uint8_t{255}).put_bytes(piece);
      rest = rest.subspan(piece.size());
    }
    corpus.add("tcp_tls", words.text);
  }
  // Somebody between them who lets all pass, and one who alters something now and then.
  Bytes quiet;
  quiet.put(std::uint8_t{2}).put(std::uint8_t{19});
  for (std::uint16_t i = 0; i < 30; ++i) quiet.put(static_cast<std::uint16_t>(1300 * i)).put(std::uint8_t{0});
  corpus.add("tcp_tls", quiet.text);
  Bytes busy;
  busy.put(std::uint8_t{2}).put(std::uint8_t{19});
  for (std::uint8_t i = 0; i < 60; ++i) busy.put(static_cast<std::uint8_t>(7 * i));
  corpus.add("tcp_tls", busy.text);
}

void ofi_datagrams(Corpus& corpus) {
  using namespace ofi;  // NOLINT(google-build-using-namespace)
  corpus.add(
      "ofi_frames",
      Bytes().put(std::uint8_t{0}).put_bytes(encode_card({"tcp;ofi_rxm", 16, 1, std::vector<std::byte>(16)})).text);
  // A stranger's frames and greetings; then a member proves itself, sends on both lanes, is read, and leaves.
  const Handshake stranger({std::byte{3}}, {2, 0, 3}, {});
  std::vector<std::byte> prefix(sizeof(Prefix));
  write_prefix(prefix.data(), FrameKind::kCredit, 1, 5, {1, 1});
  const Hello hello = stranger.hello();
  const Proof proof = stranger.proof();
  Bytes play;
  play.put(std::uint8_t{1});
  play.put(std::uint8_t{0}).put(static_cast<std::uint8_t>(prefix.size())).put_bytes(prefix);
  play.put(std::uint8_t{4}).put(hello).put(std::uint8_t{4 + 8}).put(proof).put(std::uint8_t{1});
  for (int i = 0; i < 12; ++i) {
    play.put(static_cast<std::uint8_t>(i % 3 == 0 ? 2 + 4 : 2)).put(static_cast<std::uint16_t>(90 * i));
    if (i % 4 == 3) play.put(std::uint8_t{3 + 8 + 0x20}).put(std::uint8_t{3 + 4 + 0x20});
  }
  play.put(std::uint8_t{2 + 8 + 16}).put(std::uint8_t{2}).put(std::uint8_t{1}).put(std::uint8_t{0});
  play.put(std::uint8_t{2 + 8}).put(std::uint8_t{2}).put(std::uint8_t{3 + 0xf0}).put(std::uint8_t{3 + 4 + 0xf0});
  corpus.add("ofi_frames", play.text);
}

void udp_sessions(Corpus& corpus) {
  using namespace udp;  // NOLINT(google-build-using-namespace)
  // Of another job than that of the target: what a stranger says proves nothing.
  const JobKey key{std::byte{3}, std::byte{5}};
  const HelloFrame hello = make_hello(key, {0, 1, 4}, 0, {});
  const auto add = [&](std::uint8_t kind, const auto& frame) {
    corpus.add("udp_handshake", Bytes().put(kind).put_bytes(udp::bytes_of(frame)).text);
  };
  add(0, hello);
  add(1, make_proof(key, hello, {}));
  add(2, make_challenge(key, hello, {}));
  add(3, DataFrame{});
  corpus.add("udp_handshake", Bytes().put(std::uint8_t{4}).text + "loss=0.01,reorder=0.1,largest=1400,seed=7");
  // Messages of both lanes, some in two pieces, the later one first; taken, acknowledged, sent and asked for.
  Bytes frames;
  for (int i = 0; i < 12; ++i) {
    Header header = make_header(MessageType::kEager);
    header.dtype = Datatype::kByte;
    header.segment_bytes = static_cast<std::uint32_t>(50 * i);
    const unsigned kind = 1U | (i % 3 == 0 ? 8U : 0U) | (i % 2 == 0 ? 64U : 0U) | (i % 4 == 0 ? 128U : 0U);
    frames.put(static_cast<std::uint8_t>(kind)).put(std::uint16_t{20}).put(encode(header));
    frames.put(std::uint8_t{6}).put(std::uint16_t{1}).put(std::uint16_t{700});
    frames.put(std::uint8_t{7}).put(std::uint16_t{1000}).put(std::uint8_t{5}).put(std::uint16_t{3});
    if (i % 4 == 3) frames.put(std::uint8_t{3 + 0x20}).put(std::uint16_t{1}).put(std::uint8_t{3 + 8 + 0x20});
    if (i % 4 == 3) frames.put(std::uint16_t{1}).put(std::uint8_t{4}).put(std::uint16_t{9}).put(AckFrame{});
  }
  corpus.add("udp_frames", frames.text);
}

/// A member that resumes, begins and contributes, as frames of a switch that aggregates.
void slot_frames(Corpus& corpus) {
  Bytes run;
  run.put(std::uint8_t{1});
  const auto add = [&run](std::uint8_t kind, const SlotFrame& head) { run.put(kind).put(encode(head)); };
  SlotFrame head{};
  head.generation = 1;
  head.kind = SlotKind::kResume;
  for (std::uint32_t member = 0; member < 3; ++member) {
    head.member = member;
    add(2, head);
  }
  head.kind = SlotKind::kContribute;
  head.opcode = Collective::kBarrier;
  head.root = 1;
  for (std::uint32_t member = 0; member < 3; ++member) {
    head.member = member;
    add(2, head);
  }
  corpus.add("slot_frames", run.text);
  std::vector<std::byte> datagram(slots::frame_bytes(0));
  slots::write(head, {}, datagram);
  corpus.add("slot_frames", {reinterpret_cast<const char*>(datagram.data()), datagram.size()});
}

/// What is said to a switch, and what it says: a leaf below a top, with two ranks.
void switch_control(Corpus& corpus) {
  const auto add = [&corpus](std::uint8_t kind, std::span<const std::byte> bytes) {
    corpus.add("switch_control", Bytes().put(kind).put_bytes(bytes).text);
  };
  slots::PoolRequest request;
  request.job_name = "program";
  request.ranks = 2;
  request.slots = 8;
  request.payload_bytes = 1344;
  request.nodes = {{"top", "", 0, {{"leaf", {0, 2}}}}, {"leaf", "top", 0, {{"", {0, 1}}, {"", {1, 1}}}}};
  add(0, slots::packed(request));
  add(1, slots::packed(slots::PoolAnswer{true, "", 0, 4711, 1}));
  add(1, slots::packed(slots::PoolAnswer{false, "no room", 4, 0, 0}));
  slots::Welcome welcome;
  welcome.name = "leaf";
  welcome.above = {"top"};
  add(2, slots::packed(welcome));
  add(3, slots::packed(slots::ControlFrame{slots::ControlKind::kMake, 1, slots::packed(request)}));
  const std::string status = R"({"name":"leaf","uplink":{"name":"top","connected":true,"above":["top"]}})";
  add(4, std::as_bytes(std::span(status)));
  const slots::HandlerName which{{}, "histogram"};
  add(5, slots::packed(slots::LoadRequest{which, true, false, {}, join::Blob(60)}));
  add(6, slots::packed(slots::LoadAnswer{"no room", false}));
  add(7, slots::packed(slots::UnloadRequest{which}));
  add(8, slots::packed(slots::RunRequest{which, 1, 2, 3, 4, 6, 100, {join::Blob(8), join::Blob(5)}}));
  add(9, slots::packed(slots::RunAnswer{slots::RunAnswer::State::kStopped, "h.c:3: stopped", 1, 20, {join::Blob(4)}}));
  add(10, slots::packed(slots::OperatorRequest{{}, Func::kUser0, {}, join::Blob(60)}));
}

void handlers(Corpus& corpus) {
  using handler::Element;
  using handler::Op;
  // Adds the lanes of a table that the payload names, ten times, and writes the sum.
  const auto program = handler::payload_of({
      handler::numbered(Op::kEnter, 0, 0, 9),
      handler::vector(handler::numbered(Op::kTakeLanes, 1, 1, 4, Element::kI32)),
      handler::numbered(Op::kSet, 2, 0, 16),
      handler::vector(handler::registers(Op::kSpvaccXv, Element::kFp32, 3, 1, 0, 2)),
      handler::immediate(Op::kAdd, Element::kI64, 1, 1, 1),
      handler::immediate(Op::kCompare, Element::kI64, 4, 1, 10, 1),
      handler::numbered(Op::kAgain, 0, 4, 1),
      handler::registers(Op::kPut, Element::kI32, 0, 3),
      handler::end(),
  });
  const auto binary = handler::write_binary(program);
  corpus.add("handler", {reinterpret_cast<const char*>(binary.data()), binary.size()});
  // left[i] += right[i] for 16 integers, whatever the length.
  auto op = handler::payload_of({
      handler::numbered(Op::kEnter, 0, 0, 15),
      handler::numbered(Op::kLoad, 2, 1, 128),
      handler::numbered(Op::kLoad, 3, 1, 256),
      handler::registers(Op::kAdd, Element::kI64, 2, 2, 3),
      handler::numbered(Op::kStore, 2, 1, 128),
      handler::immediate(Op::kAdd, Element::kI64, 1, 1, 8),
      handler::immediate(Op::kCompare, Element::kI64, 4, 1, 128, 1),
      handler::numbered(Op::kAgain, 0, 4, 1),
      handler::end(),
  });
  const std::array<std::uint32_t, 5> shape{handler::kOperatorMagic, 8, 16, 128, 256};
  op.data.resize(sizeof shape);
  std::memcpy(op.data.data(), shape.data(), sizeof shape);
  const auto of_operator = handler::write_binary(op);
  corpus.add("handler", {reinterpret_cast<const char*>(of_operator.data()), of_operator.size()});
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 2) throw std::runtime_error("usage: fuzz_seeds FOLDER");
  Corpus corpus(arguments[1]);
  headers(corpus);
  programs(corpus);
  texts(corpus);
  messages(corpus);
  acts(corpus);
  tcp_connections(corpus);
  tcp_encrypted(corpus);
  ofi_datagrams(corpus);
  udp_sessions(corpus);
  slot_frames(corpus);
  switch_control(corpus);
  handlers(corpus);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "fuzz_seeds: %s\n", error.what());
  return 1;
}
