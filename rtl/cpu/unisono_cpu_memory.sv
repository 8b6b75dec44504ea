// Memory of the microcontroller: one RAM of two ports behind its two Wishbone buses, and a host
// port.
//
// Instruction side (read only) and data side each take one port of the RAM. While `run_i` is low
// the core is in reset and the host has the data side.
//
// Latency: a read of one word takes 2 cycles (one to look up, one with ACK), each further word of
// an ascending burst one cycle. A write takes 1 cycle. A host read answers in the cycle after it
// was taken.
// Throughput: 1 word per cycle and side.
// Restrictions: Bytes is a power of two; addresses beyond it wrap. The RAM is not reset.
module unisono_cpu_memory #(
    parameter int unsigned Bytes = 131072,
    parameter int unsigned WordAddressWidth = $clog2(Bytes / 4)
) (
    input logic clk_i,
    input logic rst_ni,
    input logic run_i,

    // Instruction bus.
    input  logic                        fetch_valid_i,
    input  logic [WordAddressWidth-1:0] fetch_address_i,
    output logic                        fetch_ack_o,
    output logic [                31:0] fetch_data_o,

    // Data bus.
    input  logic                        data_valid_i,
    input  logic                        data_write_i,
    input  logic [WordAddressWidth-1:0] data_address_i,
    input  logic [                 3:0] data_strobe_i,
    input  logic [                31:0] data_i,
    output logic                        data_ack_o,
    output logic [                31:0] data_o,

    // Host.
    input  logic                        load_valid_i,
    output logic                        load_ready_o,
    input  logic                        load_write_i,
    input  logic [WordAddressWidth-1:0] load_address_i,
    input  logic [                31:0] load_data_i,
    output logic                        load_data_valid_o,
    output logic [                31:0] load_data_o
);

  if (Bytes < 64 || (Bytes & (Bytes - 1)) != 0) begin : gen_bad_bytes
    $error("Bytes must be a power of two, at least 64");
  end

  (* ram_style = "block" *)
  logic [31:0] words[Bytes/4];

`ifndef SYNTHESIS
  // A simulation may begin with the image in place, as a bitstream would.
  string image;
  initial begin
    if ($value$plusargs("firmware=%s", image)) $readmemh(image, words);
  end
`endif

  // A read is answered when the word at the RAM's output is the one asked for. While a word is
  // answered, the next one is looked up, which is what a burst asks for.
  typedef logic [WordAddressWidth-1:0] address_t;

  logic     fetch_known_q;
  address_t fetch_at_q;
  address_t fetch_look;
  assign fetch_ack_o = fetch_valid_i && fetch_known_q && fetch_at_q == fetch_address_i;
  assign fetch_look  = fetch_ack_o ? fetch_address_i + 1'b1 : fetch_address_i;

  always_ff @(posedge clk_i) begin
    fetch_data_o <= words[fetch_look];
    fetch_at_q <= fetch_look;
    fetch_known_q <= rst_ni && run_i && fetch_valid_i;
  end

  logic       data_known_q;
  address_t   data_at_q;
  address_t   data_look;
  logic       data_read_ack;
  logic       port_write;
  address_t   port_address;
  logic [3:0] port_strobe;
  logic [31:0] port_data;

  assign data_read_ack = data_valid_i && !data_write_i && data_known_q &&
                         data_at_q == data_address_i;
  assign data_ack_o = data_read_ack || (data_valid_i && data_write_i);
  assign data_look = data_read_ack ? data_address_i + 1'b1 : data_address_i;

  assign load_ready_o = !run_i;
  // Before the reset both sides may say anything; an image that stands in the memory already must survive it.
  assign port_write = rst_ni && (run_i ? data_valid_i && data_write_i : load_valid_i && load_write_i);
  assign port_address = run_i ? data_look : load_address_i;
  assign port_strobe = run_i ? data_strobe_i : 4'b1111;
  assign port_data = run_i ? data_i : load_data_i;

  always_ff @(posedge clk_i) begin
    if (port_write) begin
      for (int unsigned i = 0; i < 4; i++) begin
        if (port_strobe[i]) words[port_address][8*i+:8] <= port_data[8*i+:8];
      end
    end else begin
      data_o <= words[port_address];
    end
    data_at_q <= data_look;
    // A write may change the word at the output.
    data_known_q <= rst_ni && run_i && data_valid_i && !data_write_i;
    load_data_valid_o <= rst_ni && !run_i && load_valid_i && !load_write_i;
  end

  assign load_data_o = data_o;

endmodule
