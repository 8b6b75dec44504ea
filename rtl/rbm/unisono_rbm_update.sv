// What becomes of a pair's record in each step of the operations on it.
//
// Whether it is written is for the operations to say; what is not written may be anything.
//
// Latency: none, it is combinational. Throughput: one record per cycle.

module unisono_rbm_update
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_rbm_pkg::*;
(
  input  state_e         state_i,
  input  record_t        seen_i,

  input  buffer_t        shown_i,                    // Append: the segment that joins the list
  input  adopted_t       adopted_i,                  // AdoptEnd
  // Take, ClearTake: the list's head, and the one behind it. Post: the arrival. Other fields count elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  info_t          info_i,
  input  post_t          post_i,
  // verilator lint_on UNUSEDSIGNAL
  input  buffer_t        link_i,
  output logic           post_refused_o,             // the message is longer than its receive
  input  record_t        granted_i,                  // GrantStep

  // Segment, Offered, Store: what is at the head of Rx.
  input  record_t        noted_i,
  input  logic           request_i,
  input  logic           fresh_i,                    // nothing of the posted arrival's message has come
  input  logic           last_i,
  input  segment_bytes_t bytes_i,
  input  message_bytes_t end_i,
  input  logic           accepted_i,                 // Offered: it goes past the buffers
  input  logic           stores_i,                   // Store: now

  output record_t        record_o
);

  assign post_refused_o = !seen_i.posted && seen_i.bound && seen_i.total > post_i.bytes;

  always_comb begin
    record_o = seen_i;
    unique case (state_i)
      Append: begin
        record_o.listed = 1'b1;
        if (!seen_i.listed) record_o.head = shown_i;
        record_o.tail = shown_i;
        record_o.written = seen_i.written - 1'b1;
      end
      AdoptEnd: begin
        record_o = '0;
        record_o.generation = seen_i.generation;
        record_o.requested = adopted_i.requested;
        record_o.bound = adopted_i.bound;
        record_o.listed = adopted_i.listed;
        record_o.head = adopted_i.head;
        record_o.tail = adopted_i.tail;
        record_o.total = adopted_i.total;
        record_o.received = adopted_i.received;
      end
      Take: begin
        record_o.listed = seen_i.head != seen_i.tail;
        record_o.head = link_i;
        record_o.consumed = seen_i.consumed + message_bytes_t'(info_i.bytes);
        if (info_i.last) record_o = promoted(record_o);
      end
      Post: begin
        if (seen_i.posted) begin
          record_o.next = '{posted: 1'b1, entry: post_i.id.entry, program_: post_i.generation, tag: post_i.tag,
                            total: post_i.bytes, limit: '0, rendezvous: post_i.rendezvous, fan_in: post_i.fan_in,
                            ample: 1'b0, granted: 1'b0};
        end else begin
          record_o.posted = 1'b1;
          record_o.entry = post_i.id.entry;
          record_o.program_ = post_i.generation;
          record_o.tag = post_i.tag;
          record_o.total = seen_i.bound ? seen_i.total : post_i.bytes;
          record_o.consumed = '0;
          record_o.limit = '0;
          record_o.ample = 1'b0;
          record_o.granted = 1'b0;
          // The rest of a message that has begun is granted.
          record_o.rendezvous = post_i.rendezvous || (seen_i.bound && seen_i.received != '0);
          record_o.fan_in = post_i.fan_in;
          if (record_o.rendezvous) record_o.generation = seen_i.generation + 1'b1;
          record_o = met(record_o);
          if (post_refused_o) record_o.posted = 1'b0;
        end
      end
      GrantStep: record_o = granted_i;
      Segment: begin
        // What would be written, and offered, whether it is or not.
        record_o = noted_i;
        if (request_i) begin
          record_o.requested = !fresh_i;
          record_o.rendezvous = seen_i.rendezvous || fresh_i;
          if (fresh_i) record_o.generation = seen_i.generation + 1'b1;
        end
      end
      Offered: if (accepted_i) begin
        // The segment follows what has been received, as was seen when it was offered.
        record_o.received = last_i ? '0 : end_i;
        record_o.consumed = seen_i.consumed + message_bytes_t'(bytes_i);
        if (last_i) record_o = promoted(record_o);
      end
      Store: if (stores_i) begin
        record_o = noted_i;
        record_o.received = last_i ? '0 : end_i;
        record_o.written = seen_i.written + 1'b1;
      end
      ClearRead: begin
        record_o = '0;
        record_o.generation = seen_i.generation + 1'b1;
      end
      ClearTake: begin
        record_o.listed = seen_i.head != seen_i.tail;
        record_o.head = link_i;
      end
      Wipe: begin
        record_o = '0;
        record_o.generation = seen_i.generation;
      end
      default: ;
    endcase
  end

endmodule
