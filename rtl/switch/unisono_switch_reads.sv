// The memory of a port for what comes in, and reads of it for the fold: one after the other, a word per cycle.
//
// A read waits in two queues: that of what is fetched from the memory, and that of what is given to the fold.
//
// Latency: 3 cycles from a read to its first word. Throughput: a word per cycle, written and read. Restrictions: a read
// has room (`ready_o`, which leaves some for who sees it late); it is not of 0 bytes; its words have been written.

module unisono_switch_reads
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Words = 1024,
  parameter int unsigned MostWords = 64,                   // of a read
  localparam int unsigned AddressWidth = $clog2(Words),
  localparam int unsigned DataBits = SwitchBytes * 8
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  input  logic                    write_i,
  input  logic [AddressWidth-1:0] write_address_i,
  input  logic [DataBits-1:0]     write_data_i,

  // `read_eager_i`: of a buffer, which is free when its last word has been given.
  output logic                    ready_o,
  input  logic                    read_i,
  input  logic                    read_eager_i,
  input  unit_entry_t             read_entry_i,
  input  buffer_index_t           read_place_i,
  input  logic [AddressWidth-1:0] read_address_i,
  input  logic [15:0]             read_bytes_i,

  output logic                    own_valid_o,
  input  logic                    own_ready_i,
  output logic [DataBits-1:0]     own_data_o,
  output logic [SwitchBytes-1:0]  own_keep_o,

  output logic                    freed_o,
  output unit_entry_t             freed_entry_o,
  output buffer_index_t           freed_place_o
);

  localparam int unsigned WordsWidth = $clog2(MostWords + 1);
  localparam int unsigned ByteBits = $clog2(SwitchBytes);
  localparam int unsigned Waiting = 16;                    // reads
  localparam int unsigned Spare = 4;                       // for those that are on their way

  typedef logic [AddressWidth-1:0] address_t;
  typedef logic [WordsWidth-1:0] words_t;
  typedef struct packed {
    address_t address;
    words_t   words;
  } fetch_t;
  typedef struct packed {
    logic                eager;
    unit_entry_t         entry;
    buffer_index_t       place;
    words_t              words;
    logic [ByteBits-1:0] tail;                             // bytes of the last word; 0: it is full
  } give_t;

  fetch_t fetch_in, fetch;
  give_t give_in, give;
  words_t words;
  logic fetch_valid, fetch_last, give_last, give_ready, fetching;
  words_t fetched_q, given_q;
  logic [$clog2(Waiting+1)-1:0] give_count;

  assign words = words_t'((17'(read_bytes_i) + 17'(SwitchBytes - 1)) >> ByteBits);
  assign fetch_in = '{address: read_address_i, words: words};
  assign give_in = '{eager: read_eager_i, entry: read_entry_i, place: read_place_i, words: words,
                     tail: read_bytes_i[ByteBits-1:0]};

  // The same reads stand in both; those to be given at least as long.
  logic unused_ready, unused_valid, give_room;
  logic [$clog2(Waiting+1)-1:0] unused_count;
  unisono_fifo #(.Width($bits(fetch_t)), .Depth(Waiting)) u_fetches (
    .clk_i, .rst_ni, .in_valid_i(read_i), .in_ready_o(unused_ready), .in_data_i(fetch_in), .out_valid_o(fetch_valid),
    .out_ready_i(fetching && fetch_last), .out_data_o(fetch), .count_o(unused_count)
  );
  unisono_fifo #(.Width($bits(give_t)), .Depth(Waiting)) u_gives (
    .clk_i, .rst_ni, .in_valid_i(read_i), .in_ready_o(give_room), .in_data_i(give_in), .out_valid_o(unused_valid),
    .out_ready_i(give_ready), .out_data_o(give), .count_o(give_count)
  );
  assign ready_o    = 32'(give_count) < Waiting - Spare;
  assign fetch_last = fetched_q == fetch.words - words_t'(1);
  assign give_last  = given_q == give.words - words_t'(1);
  assign give_ready = own_valid_o && own_ready_i && give_last;

  unisono_ram_reader #(.Width(DataBits), .Depth(Words), .BlockRam(1'b1)) u_memory (
    .clk_i, .rst_ni, .wr_en_i(write_i), .wr_addr_i(write_address_i), .wr_data_i(write_data_i),
    .avail_i(fetch_valid), .rd_addr_i(fetch.address + address_t'(fetched_q)), .fetch_o(fetching),
    .out_valid_o(own_valid_o), .out_ready_i(own_ready_i), .out_data_o(own_data_o)
  );
  assign own_keep_o = !give_last || give.tail == '0 ? '1 : ~({SwitchBytes{1'b1}} << give.tail);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fetched_q <= '0;
      given_q   <= '0;
    end else begin
      if (fetching) fetched_q <= fetch_last ? '0 : fetched_q + words_t'(1);
      if (own_valid_o && own_ready_i) given_q <= give_last ? '0 : given_q + words_t'(1);
    end
  end

  assign freed_o       = give_ready && give.eager;
  assign freed_entry_o = give.entry;
  assign freed_place_o = give.place;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!read_i || give_room) else $error("%m: a read comes without room");
      assert (!read_i || read_bytes_i != '0) else $error("%m: a read of nothing");
      assert (!read_i || 32'(words) <= MostWords) else $error("%m: a read is too long");
    end
  end
`endif

endmodule
