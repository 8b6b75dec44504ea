// Packets of SMI's transport, as rtl/smi/unisono_smi_pkg.sv describes them: elements from byte 0, the header in the
// last bytes, and what control packets say.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/cables/message.hpp"

namespace unisono::sim::software {

/// unisono_smi_pkg::op_e, as far as nodes of channels use it.
enum class Op : std::uint8_t { kSend = 0, kSynch = 3, kLast = 7 };

/// unisono_smi_pkg::header_t.
struct Header {
  std::uint32_t src = 0;
  std::uint32_t dst = 0;
  std::uint32_t port = 0;
  Op op = Op::kSend;
  std::uint32_t count = 0;  ///< elements
  bool control() const { return op == Op::kSynch; }
};

/// A packet has up to 256 bytes: as many as the job's nodes were made for.
struct Packet {
  std::array<std::uint32_t, 64> words{};
  std::byte* bytes() { return reinterpret_cast<std::byte*>(words.data()); }
  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(words.data()); }
};

/// What a control packet says: unisono_smi_pkg::control_t.
struct Control {
  enum class Kind : std::uint8_t {
    kPlaces = 0,  ///< packets that have left the receiver's queue, elements that were popped
    kAsks = 1,    ///< a sender with credits has opened its end
    kDiffer = 2   ///< the ends do not agree
  };
  Opening opening{};         ///< of who tells it, if it is the first, asks or differs
  std::uint8_t message = 0;  ///< of a channel: how many the two had before, modulo 16
  Kind kind = Kind::kPlaces;
  bool tree = false;   ///< of a tree, not of a channel
  bool first = false;  ///< the receiver has opened its end
  std::uint32_t packets = 0;
  std::uint32_t elements = 0;
};

/// How packets of a size are laid out: 32 bytes with SMI's header of 4, or 64, 128, 256 with one of 8.
class PacketFormat {
 public:
  explicit PacketFormat(std::uint32_t packet_bytes) : bytes_(packet_bytes) {}
  std::uint32_t bytes() const { return bytes_; }
  std::uint32_t header_bytes() const { return bytes_ == 32 ? 4 : 8; }
  std::uint32_t payload_bytes() const { return bytes_ - header_bytes(); }
  Header header(const Packet& packet) const;
  void set_header(Packet& packet, const Header& header) const;

 private:
  std::uint32_t bytes_;
};

/// The payload of a control packet. Bytes behind it are left as they are.
void set_control(Packet& packet, const Control& control);
Control control_of(const Packet& packet);

}  // namespace unisono::sim::software
