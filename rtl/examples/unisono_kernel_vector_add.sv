// Example of a kernel: adds two vectors of int32 and brings the sum to another rank, without the host: as a message that
// the peer receives, or put into its window.
//
// Started once with its arguments, it makes three calls on its call stream: copy the first vector from memory to its
// stream 0, copy the second one to its stream 1, and send or put what comes on a stream of its own. It adds word by word what
// the engine gives, and gives the sums back. When all three calls have been answered, it says that it is done, with the
// code of the first that failed.
//
// docs/rtl/attaching-a-kernel.md goes through it step by step.
//
// Latency: from two words to their sum 1 cycle. Throughput: one word per cycle.

module unisono_kernel_vector_add
  import unisono_spec_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  // Stream ports of the engine: two to the kernel, one from it. The numbers of the directions are independent.
  parameter logic [3:0] PortA = 4'd0,
  parameter logic [3:0] PortB = 4'd1,
  parameter logic [3:0] PortSum = 4'd0
) (
  input  logic clk_i,
  input  logic rst_ni,

  // The kernel is started, by the engine for a call (kernel_start) or by anything else.
  input  logic        start_valid_i,
  output logic        start_ready_o,
  input  logic [31:0] communicator_i,
  input  logic [31:0] peer_i,
  input  logic        put_i,                   // to place_i in the peer's window; else as a message with tag_i
  input  logic [31:0] tag_i,
  input  logic [63:0] place_i,
  input  logic [31:0] count_i,                 // elements
  input  logic [63:0] a_address_i,
  input  logic [63:0] b_address_i,
  output logic        done_valid_o,            // for one cycle
  output logic [15:0] done_code_o,             // 0, or an error_code_e

  // Calls: packets of 128 bytes; and their answers, {code, call id}.
  output logic                   call_valid_o,
  input  logic                   call_ready_i,
  output logic [DataBytes*8-1:0] call_data_o,
  output logic [DataBytes-1:0]   call_keep_o,
  output logic                   call_last_o,
  input  logic                   answer_valid_i,
  output logic                   answer_ready_o,
  input  logic [47:0]            answer_data_i,

  // Streams from the engine.
  input  logic [1:0]                  in_valid_i,
  output logic [1:0]                  in_ready_o,
  input  logic [1:0][DataBytes*8-1:0] in_data_i,
  input  logic [1:0][DataBytes-1:0]   in_keep_i,
  input  logic [1:0]                  in_last_i,
  // A stream to the engine.
  output logic                   out_valid_o,
  input  logic                   out_ready_i,
  output logic [DataBytes*8-1:0] out_data_o,
  output logic [DataBytes-1:0]   out_keep_o,
  output logic                   out_last_o
);

  localparam int unsigned Calls = 3;
  localparam int unsigned Rows = CallDescriptorWidth / (DataBytes * 8);   // words of a packet
  localparam int unsigned RowWidth = Rows > 1 ? $clog2(Rows) : 1;
  localparam int unsigned Lanes = DataBytes / 4;

  if (DataBytes > 128 || DataBytes < 4) begin : gen_bad
    $error("unisono_kernel_vector_add: DataBytes is 4 to 128");
  end

  // -------------------------------------------------------------------------------------------------- calls

  logic busy_q;
  logic [1:0] call_q, answered_q;
  logic [RowWidth-1:0] row_q;
  logic [15:0] code_q;

  logic [63:0] bytes;
  assign bytes = {30'd0, count_i, 2'd0};

  call_descriptor_t call;
  always_comb begin
    call = '0;
    call.communicator = communicator_i;
    call.dtype = 8'(DatatypeInt32);
    call.count = 64'(count_i);
    call.call_id = 32'(call_q) + 32'd1;
    unique case (call_q)
      2'd0, 2'd1: begin
        // From memory to a stream of this kernel; the address of a stream is its port.
        call.collective = CollectiveCopy;
        call.src_address = call_q == 2'd0 ? a_address_i : b_address_i;
        call.src_bytes = bytes;
        call.dst_stream = 1'b1;
        call.dst_address = call_q == 2'd0 ? 64'(PortA) : 64'(PortB);
      end
      default: begin
        // What this kernel gives goes to the peer.
        call.collective = put_i ? CollectivePut : CollectiveSend;
        call.root = peer_i;
        call.tag = put_i ? '0 : tag_i;
        call.window_offset = put_i ? place_i : '0;
        call.src_stream = 1'b1;
        call.src_address = 64'(PortSum);
      end
    endcase
  end

  logic [Rows-1:0][DataBytes*8-1:0] rows;
  assign rows = call;
  assign call_valid_o = busy_q && call_q != 2'(Calls);
  assign call_data_o = rows[row_q];
  assign call_keep_o = '1;
  assign call_last_o = row_q == RowWidth'(Rows - 1);
  assign answer_ready_o = 1'b1;

  logic starts, all_answered;
  assign start_ready_o = !busy_q;
  assign starts = start_valid_i && start_ready_o;
  assign all_answered = busy_q && answered_q == 2'(Calls);
  assign done_valid_o = all_answered;
  assign done_code_o = code_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      call_q <= '0;
      row_q <= '0;
      answered_q <= '0;
      code_q <= '0;
    end else if (starts || all_answered) begin
      busy_q <= starts;
      call_q <= '0;
      row_q <= '0;
      answered_q <= '0;
      code_q <= '0;
    end else begin
      if (call_valid_o && call_ready_i) begin
        row_q <= call_last_o ? '0 : row_q + 1'b1;
        if (call_last_o) call_q <= call_q + 1'b1;
      end
      if (answer_valid_i) begin
        answered_q <= answered_q + 1'b1;
        if (code_q == '0) code_q <= answer_data_i[47:32];
      end
    end
  end

  // --------------------------------------------------------------------------------------------------- data
  // A word of each vector makes a word of the sum.

  logic out_valid_q, out_last_q, takes;
  logic [DataBytes*8-1:0] out_data_q, sum;
  logic [DataBytes-1:0] out_keep_q;

  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_lane
    assign sum[32*l+:32] = in_data_i[0][32*l+:32] + in_data_i[1][32*l+:32];
  end
  assign takes = in_valid_i == '1 && (!out_valid_q || out_ready_i);
  assign in_ready_o = {2{takes}};
  assign out_valid_o = out_valid_q;
  assign out_data_o = out_data_q;
  assign out_keep_o = out_keep_q;
  assign out_last_o = out_last_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) out_valid_q <= 1'b0;
    else if (takes) out_valid_q <= 1'b1;
    else if (out_ready_i) out_valid_q <= 1'b0;
    if (takes) begin
      out_data_q <= sum;
      out_keep_q <= in_keep_i[0];
      out_last_q <= in_last_i[0];
    end
  end

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && takes) begin
      assert (in_keep_i[0] == in_keep_i[1] && in_last_i[0] == in_last_i[1]) else $error("vectors of different length");
    end
  end
  `endif

  logic unused;
  assign unused = ^answer_data_i[31:0];

endmodule
