// Requests of bursts, and the places of their beats in the buffer. That is a ring of words; bursts own consecutive
// stretches of it, in order of request. Room for a burst is reserved before it is requested, so answers are never held
// up; every burst in flight has an id of its own, so they come in any order, also interleaved.
//
// Latency: command to request 2 cycles. Throughput: a burst, an answer and a beat that is taken per cycle.

module unisono_memory_read_ring #(
  parameter int unsigned DataBytes    = 64,
  parameter int unsigned AddressWidth = 64,
  parameter int unsigned BurstBeats   = 64,
  parameter int unsigned Outstanding  = 16,
  parameter int unsigned BufferWords  = 512,
  localparam int unsigned IdWidth      = $clog2(Outstanding),
  localparam int unsigned PointerWidth = $clog2(BufferWords)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // Not for commands without bytes.
  input  logic                    cmd_valid_i,
  output logic                    cmd_ready_o,
  input  logic [AddressWidth-1:0] cmd_address_i,
  input  logic [31:0]             cmd_bytes_i,

  output logic                    request_valid_o,
  input  logic                    request_ready_i,
  output logic [IdWidth-1:0]      request_id_o,
  output logic [AddressWidth-1:0] request_address_o,
  output logic [7:0]              request_length_o,

  // A beat comes, and goes to this place.
  input  logic                    answer_valid_i,
  input  logic [IdWidth-1:0]      answer_id_i,
  output logic [PointerWidth-1:0] answer_place_o,

  // The next beat in order of requests is at this place, or not yet there. It is taken; it is the last of its burst.
  output logic                    arrived_o,
  output logic [PointerWidth-1:0] place_o,
  input  logic                    take_i,
  input  logic                    take_last_i
);

  logic                    burst_valid, burst_ready;
  logic [AddressWidth-1:0] burst_address;
  logic [7:0]              burst_length;
  logic                    unused_burst_last;

  unisono_memory_bursts #(
    .DataBytes(DataBytes),
    .AddressWidth(AddressWidth),
    .BurstBeats(BurstBeats)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .cmd_valid_i,
    .cmd_ready_o,
    .cmd_address_i,
    .cmd_bytes_i,
    .burst_valid_o  (burst_valid),
    .burst_ready_i  (burst_ready),
    .burst_address_o(burst_address),
    .burst_length_o (burst_length),
    .burst_last_o   (unused_burst_last)
  );

  // Invariant: words_q words from read_pointer_q on belong to the slots_q bursts in flight.
  logic [PointerWidth-1:0] request_pointer_q, read_pointer_q;
  logic [PointerWidth:0]   words_q;
  logic [IdWidth:0]        slots_q;
  logic [IdWidth-1:0]      request_slot_q, read_slot_q;
  logic                    room, request, request_ready;

  assign room        = words_q <= (PointerWidth + 1)'(BufferWords - BurstBeats) &&
                       !slots_q[IdWidth];  // full at a power of two
  assign burst_ready = room && request_ready;
  assign request     = burst_valid && burst_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      request_pointer_q <= '0;
      request_slot_q    <= '0;
      read_pointer_q    <= '0;
      read_slot_q       <= '0;
      words_q           <= '0;
      slots_q           <= '0;
    end else begin
      if (request) begin
        request_pointer_q <= request_pointer_q + PointerWidth'(burst_length) + PointerWidth'(1);
        request_slot_q    <= request_slot_q + 1'b1;
      end
      if (take_i) begin
        read_pointer_q <= read_pointer_q + 1'b1;
      end
      if (take_i && take_last_i) begin
        read_slot_q <= read_slot_q + 1'b1;
      end
      words_q <= words_q + (request ? (PointerWidth + 1)'(burst_length) + 1'b1 : '0) -
                 (PointerWidth + 1)'(take_i);
      slots_q <= slots_q + (IdWidth + 1)'(request) - (IdWidth + 1)'(take_i && take_last_i);
    end
  end

  unisono_skid #(
    .Width(IdWidth + AddressWidth + 8)
  ) u_request (
    .clk_i,
    .rst_ni,
    .in_valid_i (burst_valid && room),
    .in_ready_o (request_ready),
    .in_data_i  ({request_slot_q, burst_address, burst_length}),
    .out_valid_o(request_valid_o),
    .out_ready_i(request_ready_i),
    .out_data_o ({request_id_o, request_address_o, request_length_o})
  );

  // Where the next beat of each burst goes; the beats before it are in the buffer.
  logic [PointerWidth-1:0] write_pointer_q [Outstanding];

  always_ff @(posedge clk_i) begin
    for (int unsigned s = 0; s < Outstanding; s++) begin
      if (request && request_slot_q == IdWidth'(s)) begin
        write_pointer_q[s] <= request_pointer_q;
      end else if (answer_valid_i && answer_id_i == IdWidth'(s)) begin
        write_pointer_q[s] <= write_pointer_q[s] + 1'b1;
      end
    end
  end

  assign answer_place_o = write_pointer_q[answer_id_i];
  assign arrived_o      = slots_q != '0 && write_pointer_q[read_slot_q] != read_pointer_q;
  assign place_o        = read_pointer_q;

`ifndef SYNTHESIS
  unisono_handshake_check #(
    .Width($bits(request_address_o))
  ) u_check_address (
    .clk_i,
    .rst_ni,
    .valid_i(request_valid_o),
    .ready_i(request_ready_i),
    .data_i (request_address_o)
  );
  always_ff @(posedge clk_i) begin
    if (rst_ni && answer_valid_i) begin
      assert (slots_q != '0)
      else $error("unisono_memory_read_ring: an answer to no request");
    end
  end
`endif

endmodule
