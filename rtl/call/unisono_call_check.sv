// Checks the descriptor of a call as it comes, and keeps what is needed of it.
//
// Rows come four at a time. What the candidate is follows from the first four; the first flaw counts, from the first
// row to the last. Only what does not depend on the communicator is checked here.
//
// Latency: a row is checked in the cycle after it came, and the code is there in the next. Throughput: four rows a
// cycle, one descriptor after the other.

module unisono_call_check
  import unisono_spec_pkg::*;
  import unisono_call_pkg::*;
#(
  parameter int unsigned KernelPorts = 1,
  parameter int unsigned Programs = 16,
  parameter int unsigned StreamPorts = MaxStreamPorts,
  localparam int unsigned KernelWidth = KernelPorts > 1 ? $clog2(KernelPorts) : 1
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             begin_i,                  // the next rows are of another descriptor
  input  logic             step_i,                   // rows are taken
  input  call_quad_index_t index_i,
  input  call_quad_t       quad_i,
  input  logic             bad_i,                    // with the last rows: it was not as long as it must be

  input  logic [Programs-1:0] program_loaded_i,

  output logic                   checks_o,           // rows are being checked
  output call_candidate_t        candidate_o,
  output logic [KernelWidth-1:0] kernel_o
);

  localparam int unsigned ProgramWidth = Programs > 1 ? $clog2(Programs) : 1;

  logic             check_q, bad_q;
  call_quad_index_t checked_quad_q;
  call_quad_t       checked_q;

  logic last_quad;

  collective_e collective_q;
  logic [7:0]  algorithm_q;
  logic        src_stream_q, dst_stream_q;
  unisono_cclo_pkg::stream_port_t src_port_q, dst_port_q;
  communicator_place_t communicator_q;
  logic [KernelWidth-1:0] kernel_number_q;
  logic [31:0] tag_q, deadline_q, call_id_q, wait0_q, wait1_q;
  call_code_t  code_q, quad_code;

  // Of the two regions whose address and bytes are at hand: 2^48 bytes or more, or beyond the end of all addresses.
  // One that ends with the last address is none of these.
  logic [1:0] region_bad;
  always_comb begin
    for (int unsigned r = 0; r < 2; r++) begin
      automatic logic [63:0] address = checked_q[2*r];
      automatic logic [63:0] bytes = checked_q[2*r+1];
      automatic logic [48:0] region_end = {1'b0, address[47:0]} + {1'b0, bytes[47:0]};
      region_bad[r] = bytes[63:48] != '0 || (address[63:48] == '1 && region_end[48] && region_end[47:0] != '0);
    end
  end

  // What is wrong with the rows at hand; 0 if nothing is.
  logic head_bad, port_bad, rest_bad;
  always_comb begin
    head_bad = checked_q[0][63:45] != '0
            || (collective_q == CollectiveNop && algorithm_q != NopPlain && checked_q[1][63:32] >= KernelPorts)
            || ((collective_q == CollectiveSend || collective_q == CollectiveRecv)
                && !unisono_cclo_pkg::is_message_tag(checked_q[2][31:0]));
    rest_bad = (collective_q == CollectiveProgram
                && (checked_q[1][63:32] >= Programs || !program_loaded_i[checked_q[1][32+:ProgramWidth]]))
            || checked_q[2] > 64'(MaxWindowOffset) || checked_q[3] != '0 || bad_q;
  end

  if (StreamPorts == 0) begin : gen_no_ports
    assign port_bad = src_stream_q || dst_stream_q;
  end else begin : gen_ports
    assign port_bad = (src_stream_q && checked_q[0] >= 64'(StreamPorts))
                   || (dst_stream_q && checked_q[2] >= 64'(StreamPorts));
  end

  always_comb begin
    quad_code = '0;
    unique case (checked_quad_q)
      2'd0: begin
        if (!collective_known(checked_q[0][7:0])) begin
          quad_code = call_code_t'(ErrorCodeInvalidArgument);
        end else if (checked_q[0][7:0] == CollectiveNop && checked_q[0][15:8] > NopStart) begin
          quad_code = call_code_t'(ErrorCodeUnknownAlgorithm);
        end else if (!func_known(checked_q[0][23:16])) begin
          quad_code = call_code_t'(ErrorCodeInvalidOp);
        end else if (checked_q[0][31:30] != '0 || !datatype_known(checked_q[0][29:24])
                  || checked_q[0][39:38] != '0 || !datatype_known(checked_q[0][37:32])) begin
          quad_code = call_code_t'(ErrorCodeInvalidDatatype);
        end else if (head_bad) begin
          quad_code = call_code_t'(ErrorCodeInvalidArgument);
        end else if (checked_q[3] > MaxCount) begin
          quad_code = call_code_t'(ErrorCodeInvalidCount);
        end
      end
      2'd1: begin
        if (port_bad || region_bad != '0) begin
          quad_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
      2'd2: begin
        if (region_bad != '0) begin
          quad_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
      default: begin
        if (rest_bad) begin
          quad_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    check_q        <= rst_ni && step_i;
    checked_quad_q <= index_i;
    checked_q      <= quad_i;
    bad_q          <= bad_i && last_quad;
    if (begin_i) begin
      code_q <= '0;
    end else if (check_q && code_q == '0) begin
      code_q <= quad_code;
    end
    if (step_i && index_i == '0) begin
      collective_q    <= collective_e'(quad_i[0][7:0]);
      algorithm_q     <= quad_i[0][15:8];
      src_stream_q    <= quad_i[0][43];
      dst_stream_q    <= quad_i[0][44];
      communicator_q  <= quad_i[1][31:8] != '0 ? 9'h100 : {1'b0, quad_i[1][7:0]};
      kernel_number_q <= quad_i[1][32+:KernelWidth];
      {deadline_q, tag_q} <= quad_i[2];
    end
    if (step_i && index_i == call_quad_index_t'(1)) begin
      src_port_q <= quad_i[0][$bits(src_port_q)-1:0];
      dst_port_q <= quad_i[2][$bits(dst_port_q)-1:0];
    end
    if (step_i && last_quad) begin
      {wait0_q, call_id_q} <= quad_i[0];
      wait1_q              <= quad_i[1][31:0];
    end
  end

  call_place_e candidate_place_q;
  call_order_e candidate_order_q;
  always_ff @(posedge clk_i) begin
    if (check_q && checked_quad_q == '0) begin
      candidate_place_q <= PlaceSlot;
      candidate_order_q <= OrderCollective;
      unique case (collective_q)
        CollectiveNop: begin
          candidate_place_q <= algorithm_q == NopPlain ? PlaceNone : PlaceKernel;
          candidate_order_q <= OrderNone;
        end
        CollectiveCopy, CollectiveCombine: candidate_order_q <= OrderNone;
        CollectiveSend: candidate_order_q <= OrderSend;
        CollectiveRecv: candidate_order_q <= OrderRecv;
        CollectivePut:  candidate_order_q <= OrderPut;
        CollectiveGet:  candidate_order_q <= OrderGet;
        default: ;
      endcase
    end
  end

  assign last_quad   = index_i == call_quad_index_t'(Quads - 1);
  assign checks_o    = check_q;
  assign kernel_o    = kernel_number_q;
  assign candidate_o = '{place: candidate_place_q, order: candidate_order_q, communicator: communicator_q,
                         call_id: call_id_q, wait0: wait0_q, wait1: wait1_q, tag: tag_q, deadline_us: deadline_q,
                         mode: algorithm_q[1:0], src_stream: src_stream_q, dst_stream: dst_stream_q,
                         src_port: src_port_q, dst_port: dst_port_q, code: code_q};

endmodule
