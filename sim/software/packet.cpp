#include "sim/software/packet.hpp"

#include <cstring>

namespace unisono::sim::software {

namespace {

/// Reads or writes the fields of a packed structure from its lowest bit on, so from the last field to the first.
template <class Words>
class Fields {
 public:
  explicit Fields(Words& words) : words_(words) {}

  std::uint32_t get(int width) {
    std::uint32_t value = 0;
    for (int bit = 0; bit < width; ++bit, ++at_) value |= (words_[at_ / 32] >> (at_ % 32) & 1U) << bit;
    return value;
  }
  void put(int width, std::uint32_t value) {
    for (int bit = 0; bit < width; ++bit, ++at_) {
      const std::uint32_t mask = 1U << (at_ % 32);
      words_[at_ / 32] = (value >> bit & 1U) != 0 ? words_[at_ / 32] | mask : words_[at_ / 32] & ~mask;
    }
  }

 private:
  Words& words_;
  std::size_t at_ = 0;
};

}  // namespace

Header PacketFormat::header(const Packet& packet) const {
  const std::byte* const from = packet.bytes() + payload_bytes();
  Header header;
  if (bytes_ == 32) {
    std::uint8_t fields[4];
    std::memcpy(fields, from, sizeof fields);
    header = {fields[0], fields[1], fields[2], static_cast<Op>(fields[3] & 7U), std::uint32_t{fields[3]} >> 3U};
  } else {
    std::uint16_t fields[4];
    std::memcpy(fields, from, sizeof fields);
    header = {fields[0], fields[1], fields[2], static_cast<Op>(fields[3] & 7U), std::uint32_t{fields[3]} >> 3U};
  }
  return header;
}

void PacketFormat::set_header(Packet& packet, const Header& header) const {
  std::byte* const into = packet.bytes() + payload_bytes();
  const std::uint32_t last = static_cast<std::uint32_t>(header.op) | header.count << 3U;
  if (bytes_ == 32) {
    const std::uint8_t fields[4] = {static_cast<std::uint8_t>(header.src), static_cast<std::uint8_t>(header.dst),
                                    static_cast<std::uint8_t>(header.port), static_cast<std::uint8_t>(last)};
    std::memcpy(into, fields, sizeof fields);
  } else {
    const std::uint16_t fields[4] = {static_cast<std::uint16_t>(header.src), static_cast<std::uint16_t>(header.dst),
                                     static_cast<std::uint16_t>(header.port), static_cast<std::uint16_t>(last)};
    std::memcpy(into, fields, sizeof fields);
  }
}

void set_control(Packet& packet, const Control& control) {
  Fields fields(packet.words);
  fields.put(32, control.elements);
  fields.put(32, control.packets);
  fields.put(1, control.first ? 1 : 0);
  fields.put(1, control.tree ? 1 : 0);
  fields.put(2, static_cast<std::uint32_t>(control.kind));
  fields.put(4, control.message);
  fields.put(32, control.opening.window);
  fields.put(32, control.opening.count);
  fields.put(8, static_cast<std::uint32_t>(control.opening.func));
  fields.put(6, static_cast<std::uint32_t>(control.opening.dtype));
  fields.put(2, static_cast<std::uint32_t>(control.opening.size));
  fields.put(1, control.opening.strict ? 1 : 0);
  fields.put(1, control.opening.credits ? 1 : 0);
  fields.put(3, static_cast<std::uint32_t>(control.opening.kind));
}

Control control_of(const Packet& packet) {
  Fields fields(packet.words);
  Control control;
  control.elements = fields.get(32);
  control.packets = fields.get(32);
  control.first = fields.get(1) != 0;
  control.tree = fields.get(1) != 0;
  control.kind = static_cast<Control::Kind>(fields.get(2));
  control.message = static_cast<std::uint8_t>(fields.get(4));
  control.opening.window = fields.get(32);
  control.opening.count = fields.get(32);
  control.opening.func = static_cast<int>(fields.get(8));
  control.opening.dtype = static_cast<int>(fields.get(6));
  control.opening.size = static_cast<int>(fields.get(2));
  control.opening.strict = fields.get(1) != 0;
  control.opening.credits = fields.get(1) != 0;
  control.opening.kind = static_cast<int>(fields.get(3));
  return control;
}

}  // namespace unisono::sim::software
