// Takes a handler that has been checked: its words, what its memory begins with, where its functions begin.
//
// Nothing here looks at instructions: whoever loads has run the loader's checks (switch/handler/check.cpp). What does
// not fit, or needs an element that is not built in, is refused when it is committed, and does not run.
//
// Latency: a read of memory is answered in the cycle after it. Throughput: a transfer per cycle.
module unisono_handler_loader
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter int unsigned   Words = 1024,
  parameter int unsigned   MemoryBytes = 65536,
  parameter element_mask_t Elements = '1,
  localparam int unsigned  WordBits = $clog2(Words),
  localparam int unsigned  AddressBits = $clog2(MemoryBytes)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   valid_i,  // taken at once
  input  load_e                  what_i,
  input  logic [31:0]            address_i,
  input  cell_t                  data_i,
  output logic                   read_valid_o,  // memory's data are those of the cycle

  output logic                   loaded_o,
  output refused_e               refused_o,
  output logic [Functions-1:0]   has_o,
  output logic [Functions-1:0][13:0] entry_o,
  output logic [24:0]            memory_bytes_o,
  output logic [31:0]            budget_o,

  output logic                   word_en_o,
  output logic [WordBits-1:0]    word_address_o,
  output cell_t                  word_o,
  output logic                   wr_en_o,
  output logic                   rd_en_o,
  output logic [AddressBits-1:0] address_o,
  output cell_t                  data_o
);

  logic word_beyond, memory_beyond;
  refused_e refused_q;
  assign word_beyond = address_i >= Words;
  assign memory_beyond = address_i >= MemoryBytes;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      loaded_o <= 1'b0;
      refused_o <= RefusedNot;
      refused_q <= RefusedNot;
      has_o <= '0;
      read_valid_o <= 1'b0;
    end else begin
      read_valid_o <= rd_en_o;
      if (valid_i) begin
        case (what_i)
          LoadBegin: begin
            loaded_o <= 1'b0;
            refused_o <= RefusedNot;
            refused_q <= RefusedNot;
            has_o <= '0;
          end
          LoadWord: if (word_beyond) refused_q <= RefusedWords;
          LoadMemory: if (memory_beyond) refused_q <= RefusedMemory;
          LoadEntry: has_o[address_i[1:0]] <= 1'b1;
          LoadBytes: if (data_i > 64'(MemoryBytes)) refused_q <= RefusedMemory;
          LoadCommit: begin
            loaded_o <= refused_q == RefusedNot && (data_i[7:0] & ~Elements) == '0;
            refused_o <= refused_q != RefusedNot ? refused_q
                       : (data_i[7:0] & ~Elements) != '0 ? RefusedElements : RefusedNot;
          end
          default: ;
        endcase
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      case (what_i)
        LoadEntry: entry_o[address_i[1:0]] <= data_i[13:0];
        LoadBytes: memory_bytes_o <= data_i[24:0];
        LoadBudget: budget_o <= data_i[31:0];
        default: ;
      endcase
    end
  end

  assign word_en_o = valid_i && what_i == LoadWord && !word_beyond;
  assign word_address_o = WordBits'(address_i);
  assign word_o = data_i;
  assign wr_en_o = valid_i && what_i == LoadMemory && !memory_beyond;
  assign rd_en_o = valid_i && what_i == LoadRead;
  assign address_o = AddressBits'(address_i);
  assign data_o = data_i;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && valid_i && what_i == LoadEntry) begin
      assert (address_i < Functions) else $error("%m: there is no such function");
    end
  end
`endif

endmodule
