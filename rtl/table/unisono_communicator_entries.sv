// The entries of all communicators, for blocks that need one in the cycle in which they name it.
//
// Follows the same register writes as unisono_communicators, and answers from LUTRAM. Latency: 0 cycles.
// Throughput: a look-up per port and cycle.

module unisono_communicator_entries
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned Ports = 2
) (
  input  logic clk_i,

  input  logic          write_i,
  input  communicator_t communicator_i,
  input  logic [2:0]    word_i,
  input  logic [31:0]   data_i,

  input  communicator_t       asked_i [Ports],
  output communicator_entry_t entry_o [Ports]
);

  (* ram_style = "distributed" *) logic [31:0]        number_mem [Communicators];
  (* ram_style = "distributed" *) logic [15:0]        epoch_mem [Communicators];
  (* ram_style = "distributed" *) logic [31:0]        eager_mem [Communicators];
  (* ram_style = "distributed" *) logic [31:0]        segment_mem [Communicators];
  (* ram_style = "distributed" *) logic [31:0]        buffers_mem [Communicators];
  (* ram_style = "distributed" *) logic [RankWidth:0] size_mem [Communicators];
  (* ram_style = "distributed" *) logic [RankWidth:0] members_mem [Communicators];
  (* ram_style = "distributed" *) rank_t              rank_mem [Communicators];

  always_ff @(posedge clk_i) begin
    if (write_i) begin
      case (word_i)
        3'd0: number_mem[communicator_i] <= data_i;
        3'd1: epoch_mem[communicator_i] <= data_i[15:0];
        3'd2: eager_mem[communicator_i] <= data_i;
        3'd3: segment_mem[communicator_i] <= data_i;
        3'd4: buffers_mem[communicator_i] <= data_i;
        3'd5: begin
          size_mem[communicator_i] <= data_i[RankWidth:0];
          members_mem[communicator_i] <= data_i[8+:RankWidth+1];
          rank_mem[communicator_i] <= data_i[16+:RankWidth];
        end
        default: ;
      endcase
    end
  end

  for (genvar p = 0; p < int'(Ports); p++) begin : gen_port
    always_comb begin
      entry_o[p].number = number_mem[asked_i[p]];
      entry_o[p].epoch = epoch_mem[asked_i[p]];
      entry_o[p].eager_limit = eager_mem[asked_i[p]];
      entry_o[p].segment_bytes = segment_mem[asked_i[p]];
      {entry_o[p].opens, entry_o[p].kept, entry_o[p].rx_buffers} = buffers_mem[asked_i[p]];
      entry_o[p].size = size_mem[asked_i[p]];
      entry_o[p].members = members_mem[asked_i[p]];
      entry_o[p].rank = rank_mem[asked_i[p]];
    end
  end

endmodule
