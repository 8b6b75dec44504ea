// Connects the memory model with the ports of a Verilated model, whatever their widths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "sim/memory/axi_memory.hpp"

namespace unisono::sim {

/// A port of a Verilated model: an integer or an array of words, little-endian in either case. The port is a packed
/// array of `width` bits per channel.
class Pin {
 public:
  Pin() = default;
  template <class Port>
  Pin(Port& port, unsigned width) : bytes_(reinterpret_cast<std::uint8_t*>(&port)), width_(width) {}

  /// The lowest 64 bits of a channel's part; 0 for a port that the model does not have.
  std::uint64_t get(unsigned channel) const {
    std::uint64_t value = 0;
    const std::size_t low = static_cast<std::size_t>(channel) * width_;
    if (within_byte(low)) return bytes_[low / 8] >> (low % 8) & ((1U << width_) - 1);
    if (width_ == 64) {
      std::memcpy(&value, bytes_ + low / 8, sizeof value);
      return value;
    }
    for (unsigned bit = 0; bit < width_ && bit < 64;) {
      const std::size_t at = low + bit;
      const unsigned part = 8 - static_cast<unsigned>(at % 8);
      value |= static_cast<std::uint64_t>(bytes_[at / 8] >> (at % 8)) << bit;
      bit += part;
    }
    return width_ == 0 ? 0 : width_ < 64 ? value & ((std::uint64_t{1} << width_) - 1) : value;
  }

  void set(unsigned channel, std::uint64_t value) const {
    const std::size_t low = static_cast<std::size_t>(channel) * width_;
    if (within_byte(low)) {
      const unsigned mask = ((1U << width_) - 1) << (low % 8);
      std::uint8_t& byte = bytes_[low / 8];
      byte = static_cast<std::uint8_t>((byte & ~mask) | (static_cast<unsigned>(value << (low % 8)) & mask));
      return;
    }
    for (unsigned bit = 0; bit < width_; ++bit) {
      const std::size_t at = low + bit;
      const auto mask = static_cast<std::uint8_t>(1U << (at % 8));
      bytes_[at / 8] = static_cast<std::uint8_t>((bytes_[at / 8] & ~mask) | ((value >> bit & 1U) != 0 ? mask : 0));
    }
  }

  /// Of a port whose width is a whole number of bytes.
  std::span<std::uint8_t> bytes(unsigned channel) const {
    return {bytes_ + static_cast<std::size_t>(channel) * width_ / 8, width_ / 8};
  }

  explicit operator bool() const { return width_ != 0; }

 private:
  // So are most ports, and they are looked at in every cycle.
  bool within_byte(std::size_t low) const { return width_ != 0 && low % 8 + width_ <= 8; }

  std::uint8_t* bytes_ = nullptr;
  unsigned width_ = 0;
};

/// The ports of a model, one AXI4 interface per channel. Ports left unbound are ignored: a model that only reads has
/// no write channels.
struct AxiPins {
  Pin arid, araddr, arlen, arsize, arburst, arvalid, arready;
  Pin rid, rdata, rresp, rlast, rvalid, rready;
  Pin awid, awaddr, awlen, awsize, awburst, awvalid, awready;
  Pin wdata, wstrb, wlast, wvalid, wready;
  Pin bid, bresp, bvalid, bready;

  AxiInputs sample(unsigned channel) const {
    AxiInputs in;
    if (arvalid) {
      in.arvalid = arvalid.get(channel) != 0;
      if (in.arvalid) {
        in.arid = static_cast<std::uint32_t>(arid.get(channel));
        in.araddr = araddr.get(channel);
        in.arlen = static_cast<std::uint8_t>(arlen.get(channel));
        in.arsize = static_cast<std::uint8_t>(arsize.get(channel));
        in.arburst = static_cast<std::uint8_t>(arburst.get(channel));
      }
      in.rready = rready.get(channel) != 0;
    }
    if (awvalid) {
      in.awvalid = awvalid.get(channel) != 0;
      if (in.awvalid) {
        in.awid = static_cast<std::uint32_t>(awid.get(channel));
        in.awaddr = awaddr.get(channel);
        in.awlen = static_cast<std::uint8_t>(awlen.get(channel));
        in.awsize = static_cast<std::uint8_t>(awsize.get(channel));
        in.awburst = static_cast<std::uint8_t>(awburst.get(channel));
      }
      in.wvalid = wvalid.get(channel) != 0;
      if (in.wvalid) {
        const auto data = wdata.bytes(channel);
        std::memcpy(in.wdata.data(), data.data(), data.size());
        in.wstrb = wstrb.get(channel);
        in.wlast = wlast.get(channel) != 0;
      }
      in.bready = bready.get(channel) != 0;
    }
    return in;
  }

  void drive(unsigned channel, const AxiOutputs& out) const {
    if (arvalid) {
      arready.set(channel, out.arready ? 1 : 0);
      rvalid.set(channel, out.rvalid ? 1 : 0);
      if (out.rvalid) {
        rid.set(channel, out.rid);
        rresp.set(channel, static_cast<std::uint64_t>(out.rresp));
        rlast.set(channel, out.rlast ? 1 : 0);
        const auto data = rdata.bytes(channel);
        std::memcpy(data.data(), out.rdata.data(), data.size());
      }
    }
    if (awvalid) {
      awready.set(channel, out.awready ? 1 : 0);
      wready.set(channel, out.wready ? 1 : 0);
      bvalid.set(channel, out.bvalid ? 1 : 0);
      if (out.bvalid) {
        bid.set(channel, out.bid);
        bresp.set(channel, static_cast<std::uint64_t>(out.bresp));
      }
    }
  }
};

/// Binds `m_axi_ar…` and `m_axi_r…` of a Verilated model. Widths are per channel.
template <class Top>
void bind_read_pins(AxiPins& pins, Top& top, unsigned id_width, unsigned address_width, unsigned beat_bytes) {
  pins.arid = {top.m_axi_arid, id_width};
  pins.araddr = {top.m_axi_araddr, address_width};
  pins.arlen = {top.m_axi_arlen, 8};
  pins.arsize = {top.m_axi_arsize, 3};
  pins.arburst = {top.m_axi_arburst, 2};
  pins.arvalid = {top.m_axi_arvalid, 1};
  pins.arready = {top.m_axi_arready, 1};
  pins.rid = {top.m_axi_rid, id_width};
  pins.rdata = {top.m_axi_rdata, beat_bytes * 8};
  pins.rresp = {top.m_axi_rresp, 2};
  pins.rlast = {top.m_axi_rlast, 1};
  pins.rvalid = {top.m_axi_rvalid, 1};
  pins.rready = {top.m_axi_rready, 1};
}

/// Binds `m_axi_aw…`, `m_axi_w…` and `m_axi_b…`.
template <class Top>
void bind_write_pins(AxiPins& pins, Top& top, unsigned id_width, unsigned address_width, unsigned beat_bytes) {
  pins.awid = {top.m_axi_awid, id_width};
  pins.awaddr = {top.m_axi_awaddr, address_width};
  pins.awlen = {top.m_axi_awlen, 8};
  pins.awsize = {top.m_axi_awsize, 3};
  pins.awburst = {top.m_axi_awburst, 2};
  pins.awvalid = {top.m_axi_awvalid, 1};
  pins.awready = {top.m_axi_awready, 1};
  pins.wdata = {top.m_axi_wdata, beat_bytes * 8};
  pins.wstrb = {top.m_axi_wstrb, beat_bytes};
  pins.wlast = {top.m_axi_wlast, 1};
  pins.wvalid = {top.m_axi_wvalid, 1};
  pins.wready = {top.m_axi_wready, 1};
  pins.bid = {top.m_axi_bid, id_width};
  pins.bresp = {top.m_axi_bresp, 2};
  pins.bvalid = {top.m_axi_bvalid, 1};
  pins.bready = {top.m_axi_bready, 1};
}

}  // namespace unisono::sim
