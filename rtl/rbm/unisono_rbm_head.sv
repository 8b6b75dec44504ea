// Decides what the manager does with the segment that is next in Rx, by its header and the record of its pair.
//
// A segment must continue what has been received of its message, have the signature of its call and not be longer than
// its arrival expects; a write must be of the message that its token was given for, and within what is granted. Of the
// next arrival's message a write is taken only behind what is still there of the posted one's.
//
// Latency: where the segment ends, and whether it has a payload, is there one cycle after its header; all else in the
// cycle of the record. Throughput: one per cycle.

module unisono_rbm_head
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_rbm_pkg::*;
(
  input  logic clk_i,

  // Of the header other fields were looked at before.
  // verilator lint_off UNUSEDSIGNAL
  input  received_t      received_i,
  // verilator lint_on UNUSEDSIGNAL
  output message_t       message_o,                  // what it is known by
  output kind_t          kind_o,
  output segment_bytes_t bytes_o,
  output message_bytes_t end_o,                      // where the segment ends in its message
  output logic           empty_o,                    // it has no payload
  output info_t          info_o,                     // what is kept of it with its buffer
  output owner_t         owner_o,

  // The pair, its record, and how its call compares with the header.
  input  rank_t          peer_i,
  // Of the record other fields count elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  record_t        seen_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic           known_i,
  input  logic           active_i,
  input  logic           same_communicator_i,
  input  logic           same_signature_i,
  input  logic           matched_i,                  // there is a call for it
  input  logic           over_i,                     // a collective's: its call is over
  input  logic           early_i,                    // continued: its message has begun early
  input  logic           must_wait_i,                // the pair may have something early, but not all is in its list
  input  logic           untouched_i,                // the pair may have something early
  output verdict_e       verdict_o,
  output logic           fresh_o,                    // nothing of the posted arrival's message has come
  output logic           request_bad_o,              // a request does not fit
  output error_code_e    code_o,                     // why it does not fit
  output record_t        noted_o                     // the record, with the message that a receive has
);

  // verilator lint_off UNUSEDSIGNAL
  header_t header;
  // verilator lint_on UNUSEDSIGNAL
  kind_t kind;
  logic is_write, is_due, is_due_now, is_due_next, fits, fits_due, truncates;
  message_bytes_t header_end_q;
  logic empty_q;

  assign header = received_i.header;
  assign is_write = header.type_ == MessageTypeWrite;
  assign kind = '{is_data: header.type_ == MessageTypeEager || is_write, is_write: is_write,
                  is_grant: header.type_ == MessageTypeGrant, is_request: header.type_ == MessageTypeRequest,
                  is_pair: header.point_to_point};
  assign kind_o = kind;
  // What follows the first segment of a message on credit, and a first segment that something follows.
  logic continues, opens;
  assign continues = kind.is_pair && header.type_ == MessageTypeEager && !header.first;
  assign opens = kind.is_pair && header.type_ == MessageTypeEager && header.first && !header.last;
  assign message_o = '{point_to_point: header.point_to_point, grant: kind.is_grant, continues: continues, opens: opens,
                       communicator: received_i.communicator, source: received_i.source,
                       sequence_: header.sequence_, tag: header.tag, signature: header.signature};
  assign bytes_o = segment_bytes_t'(header.segment_bytes);

  // The header has been there for a cycle when its pair is looked at.
  always_ff @(posedge clk_i) begin
    header_end_q <= header.offset + message_bytes_t'(bytes_o);
    empty_q <= bytes_o == '0;
  end
  assign end_o = header_end_q;
  assign empty_o = empty_q;

  assign info_o = '{grant: kind.is_grant, request: kind.is_request, point_to_point: kind.is_pair,
                    continues: continues, opens: opens,
                    communicator: received_i.communicator, source: received_i.source,
                    key: kind.is_pair ? header.tag : header.sequence_,
                    signature: kind.is_grant ? {header.token_generation, header.token_slot} : header.signature,
                    ends: kind.is_request || opens ? message_bytes_t'(header.sequence_) : header_end_q, bytes: bytes_o,
                    last: header.last, tag: header.tag[23:0], total: header.message_bytes};
  assign owner_o = '{eager: kind.is_data && !is_write, communicator: received_i.communicator,
                     source: received_i.source};

  // Is a write of the message that its token was given for, and does it fit what is expected? Known pairs only.
  assign is_due_now = seen_i.posted && seen_i.rendezvous && header.token_generation == seen_i.generation;
  assign is_due_next = seen_i.next.posted && seen_i.next.rendezvous && (seen_i.listed || seen_i.written != '0) &&
                       header.token_generation == seen_i.generation + 1'b1;
  assign is_due = active_i && known_i && (is_due_now || is_due_next) && peer_i == received_i.source &&
                  same_communicator_i;
  assign fits_due = is_due_now ? header_end_q <= seen_i.limit : header_end_q <= seen_i.next.limit;
  assign truncates = seen_i.posted && header.message_bytes > seen_i.total;
  assign fits = same_signature_i &&
                (is_write ? fits_due : !truncates || !kind.is_pair) &&
                header.offset == seen_i.received &&
                (!seen_i.posted || seen_i.listed || seen_i.written != '0 || kind.is_pair ||
                 (header.tag[23:0] == seen_i.tag && header.message_bytes == seen_i.total));
  assign fresh_o = seen_i.posted && !seen_i.listed && seen_i.written == '0 && seen_i.received == '0 &&
                   seen_i.consumed == '0;
  assign request_bad_o = !same_signature_i ||
                         (fresh_o && (kind.is_pair ? truncates : header.message_bytes != seen_i.total));
  assign code_o = kind.is_pair && truncates && (kind.is_request || same_signature_i) ? ErrorCodeTruncated
                                                                                        : ErrorCodeMismatchedCall;

  always_comb begin
    noted_o = seen_i;
    if (kind.is_pair && !is_write) begin
      noted_o.bound = 1'b1;
      noted_o.total = header.message_bytes;
      // The rest of a long message is granted while it goes on.
      if (opens && seen_i.posted && !seen_i.rendezvous) begin
        noted_o.rendezvous = 1'b1;
        noted_o.generation = seen_i.generation + 1'b1;
      end
    end
  end

  always_comb begin
    if (!kind.is_data && !kind.is_grant && !kind.is_request) begin
      verdict_o = VerdictDrop;                       // not of this version
    end else if (is_write && !is_due) begin
      verdict_o = VerdictDrop;                       // its arrival has ended
    end else if (!is_write && !matched_i) begin
      verdict_o = (kind.is_pair ? kind.is_grant || (continues && !early_i) : over_i) ? VerdictDrop : VerdictEarly;
    end else if (must_wait_i) begin
      verdict_o = VerdictWait;
    end else if (untouched_i) begin
      verdict_o = VerdictAdopt;
    end else if (kind.is_grant) begin
      verdict_o = active_i ? VerdictGrant : VerdictDrop;
    end else if (kind.is_request) begin
      verdict_o = VerdictRequest;
    end else begin
      verdict_o = fits ? VerdictTake : VerdictRefuse;
    end
  end

endmodule
