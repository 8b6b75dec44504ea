// Writes the job of a look: what a lane reads, combines, writes and sends of one segment, and the header that it has.
//
// A job is of one segment of one message. Of several peers' messages each has its own, through the lane's accumulator:
// all but the last are *partial*, and neither write nor send. A request to grant a message has the message's header,
// and nothing else. A put says where in the window it ends, so that every segment tells whether all of it fits.
//
// Latency: none. Throughput: one per cycle.

module unisono_dispatcher_job
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_look_pkg::*;
#(
  parameter address_t    BufferBase = 64'h0,       // receive buffers in the engine's memory
  parameter int unsigned BufferBytes = 8192        // from one to the next
) (
  // The look, how far it is, and in its list. Of these other fields are of others.
  // verilator lint_off UNUSEDSIGNAL
  input  look_t          look_i,
  input  run_t           run_i,
  input  list_t          list_i,
  // verilator lint_on UNUSEDSIGNAL
  input  message_bytes_t position_i,
  input  logic           size_last_i,              // its message ends with it
  input  buffer_t        buffer_i,                 // where its arrival stands
  // The limit has been heeded.
  // verilator lint_off UNUSEDSIGNAL
  input  grant_t         grant_i,
  input  call_context_t  context_i,
  input  communicator_entry_t communicator_i,
  // verilator lint_on UNUSEDSIGNAL
  input  session_t       session_i,                // that leads to its peer
  input  logic [15:0]    put_generation_i,

  output job_t           job_o
);

  logic partial, last_of_move;                  // one message of several, not the last
  assign last_of_move = size_last_i && !list_i.makes && !list_i.keeps;
  assign partial = run_i.fan_in && !list_i.last;

  always_comb begin
    job_o = '0;
    job_o.id = look_i.id;
    job_o.generation = run_i.generation;
    job_o.last = last_of_move && !partial && !run_i.put;   // its peer says when a put is complete
    job_o.wakes = list_i.makes && !partial;
    job_o.bytes = look_i.bytes;
    // The first message of a list is there to be added to, unless there is an op0.
    job_o.func = run_i.fan_in && list_i.first && !run_i.op0 ? FuncNone : run_i.func;
    job_o.dtype = run_i.dtype;
    job_o.swap = run_i.swap;
    job_o.wide = run_i.fan_in && run_i.func inside {FuncSum, FuncProd} &&
                 run_i.dtype inside {DatatypeFp16, DatatypeBf16};
    job_o.op0 = run_i.bytes == '0 ? Op0None : run_i.fan_in && !list_i.first ? Op0Accumulator
                : run_i.op0_use.used ? Op0Stream : run_i.op0 ? Op0Memory : Op0None;
    job_o.op0_address = run_i.op0_use.used ? run_i.op0_address : run_i.op0_address + address_t'(position_i);
    job_o.op1 = run_i.bytes == '0 ? Op1None : look_i.offered ? Op1Bypass
                : (run_i.arrival || run_i.op1_memory) ? Op1Memory : Op1None;
    job_o.op1_address = run_i.arrival
        ? BufferBase + address_t'(buffer_i) * address_t'(BufferBytes)
        : run_i.op1_address + address_t'(position_i);
    job_o.releases = run_i.arrival && !look_i.offered && !list_i.keeps && run_i.bytes != '0;
    job_o.buffer = buffer_i;
    job_o.accumulate = partial;
    job_o.local_ = run_i.local_ && run_i.bytes != '0 && !partial && !list_i.keeps;
    job_o.local_address = run_i.local_use.used ? run_i.local_address
                                               : run_i.local_address + address_t'(position_i);
    job_o.stream = job_o.local_ && run_i.local_use.used;
    job_o.starts = position_i == '0;
    job_o.send = run_i.send && !partial;
    job_o.transmit.communicator = context_i.communicator;
    job_o.transmit.peer = run_i.peer;
    job_o.transmit.session = session_i;
    job_o.transmit.control = 1'b0;
    job_o.transmit.header.type_ = run_i.eager ? MessageTypeEager : MessageTypeWrite;
    job_o.transmit.header.dtype = 8'(run_i.dtype);
    job_o.transmit.header.first = position_i == '0;
    job_o.transmit.header.last = size_last_i;
    job_o.transmit.header.point_to_point = context_i.point_to_point;
    job_o.transmit.header.communicator = communicator_i.number;
    job_o.transmit.header.epoch = communicator_i.epoch;
    job_o.transmit.header.source = 32'(communicator_i.rank);
    job_o.transmit.header.destination = 32'(run_i.peer);
    job_o.transmit.header.sequence_ = context_i.sequence_;
    job_o.transmit.header.tag = context_i.point_to_point ? context_i.tag : 32'(run_i.tag);
    job_o.transmit.header.segment_bytes = 32'(look_i.bytes);
    job_o.transmit.header.message_bytes = run_i.bytes;
    job_o.transmit.header.offset = position_i;
    job_o.transmit.header.signature = context_i.signature;
    if (run_i.send && !run_i.eager) begin
      job_o.transmit.header.token_slot = grant_i.slot;
      job_o.transmit.header.token_generation = grant_i.generation;
    end
    if (run_i.put) begin
      job_o.transmit.header.type_ = MessageTypeWrite;
      job_o.transmit.header.first = 1'b0;
      job_o.transmit.header.sequence_ = 32'({look_i.id.slot, put_generation_i});
      job_o.transmit.header.message_bytes = message_bytes_t'(run_i.op1_address) + run_i.bytes;
      job_o.transmit.header.offset = message_bytes_t'(run_i.op1_address) + position_i;
      job_o.transmit.header.token_slot = 16'(WindowSlot);
      job_o.transmit.header.token_generation = '0;
    end
    // A request has the message's header, and nothing else.
    if (look_i.asks) begin
      job_o.last = 1'b0;
      job_o.wakes = 1'b0;
      job_o.op0 = Op0None;
      job_o.op1 = Op1None;
      job_o.releases = 1'b0;
      job_o.accumulate = 1'b0;
      job_o.local_ = 1'b0;
      job_o.stream = 1'b0;
      job_o.send = 1'b1;
      job_o.transmit.header.type_ = MessageTypeRequest;
      job_o.transmit.header.first = 1'b1;
      job_o.transmit.header.last = 1'b1;
      job_o.transmit.header.offset = '0;
      job_o.transmit.header.token_slot = '0;
      job_o.transmit.header.token_generation = '0;
    end
  end

endmodule
