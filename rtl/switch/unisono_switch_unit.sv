// The unit of a switch that takes part in collectives: a virtual rank with a port for each neighbour. It speaks the
// protocol of engines (docs/engine.md, "Among engines in hardware"), so to a member it is a peer like any other.
//
//   frames ─► ingress ─► own words ─► chain of folds ─► narrow ─► crossbar ─► egress ─► frames
//                │ heads, grants          ▲ starts                  ▲ masks      ▲ headers
//                └──────────────────────► control ──────────────────┴────────────┘
//                      ▲ communicator table, CCM
//
// Only frames for this unit come in; a frame that passes through the switch does not come here.
//
// Control port (32-bit words): bit 15 of the number of a word is 0 for the communicator table, word [9:0] as in
// unisono_switch_table; 1 for terms, entry e at 64 * e + ...
//     0  this switch's rank          3  receive buffers for each neighbour, at most EagerBuffers
//     1  eager limit, bytes          4  writing it opens the entry, which takes UnitRuns cycles
//     2  segment, bytes
//     8 + 2 * p   rank behind port p, is a switch [31]
//     9 + 2 * p   its address
// and reads there are of what runs wait for, as in unisono_switch_waits.
// An entry is opened after its table words are written and before word 7 makes it valid, while nothing of an earlier
// life is under way.
//
// Latency: of k children, from the last contribution's last word to the first of the result: see docs/rtl/switch_unit.md.
// Restrictions: what lies behind a port is one member or one switch, in each communicator.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_switch_unit
  import unisono_spec_pkg::*;
  import unisono_plugin_pkg::*;
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports = 8,             // 4 to MaxPorts
  parameter datatype_mask_t Datatypes = AllDatatypes,
  parameter func_mask_t Funcs = SwitchFuncs,
  parameter int unsigned BufferBytes = 4096,    // of a segment, at most; a power of two
  parameter int unsigned WindowSegments = 4,            // segments of a run
  localparam int unsigned DataBits = SwitchBytes * 8
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  input  logic                              reg_valid_i,   // not while an entry is being opened
  input  logic                              reg_write_i,
  input  logic [15:0]                       reg_word_i,
  input  logic [31:0]                       reg_data_i,
  output logic                              reg_valid_o,
  output logic [31:0]                       reg_data_o,

  input  logic [Ports-1:0]                  in_valid_i,
  output logic [Ports-1:0]                  in_ready_o,
  input  logic [Ports-1:0][DataBits-1:0]    in_data_i,
  input  logic [Ports-1:0][SwitchBytes-1:0] in_keep_i,
  input  logic [Ports-1:0]                  in_last_i,

  output logic [Ports-1:0]                  out_valid_o,
  input  logic [Ports-1:0]                  out_ready_i,
  output logic [Ports-1:0][DataBits-1:0]    out_data_o,
  output logic [Ports-1:0][SwitchBytes-1:0] out_keep_o,
  output logic [Ports-1:0]                  out_last_o,
  output node_t [Ports-1:0]                 out_address_o,
  output logic [Ports-1:0]                  out_control_o,

  output logic [31:0]                       counter_messages_o,    // that have gone on, folds counted once
  output logic [31:0]                       counter_mismatches_o,
  output logic [Ports-1:0][31:0]            counter_arrived_o,     // messages
  output logic [Ports-1:0][31:0]            counter_faults_o,      // what nobody sends who keeps to the protocol
  output logic [Ports-1:0][31:0]            counter_bad_frames_o
);

  if (Ports < 4 || Ports > MaxPorts) begin : gen_bad_ports
    $error("unisono_switch_unit: Ports must be 4 to %0d", MaxPorts);
  end

  localparam int unsigned TagBits = 4;
  localparam int unsigned Tags = 2 ** TagBits;
  localparam int unsigned CountBits = $clog2(BufferBytes / SwitchBytes + 1);

  typedef logic [Ports-1:0] ports_t;

  // ---------------------------------------------------------------- registers
  logic             table_word, term_word;
  unit_entry_t      reg_entry;
  logic [5:0]       reg_field;
  terms_t           terms_q [UnitEntries];
  neighbour_t       neighbours_q [UnitEntries][Ports];

  assign table_word = reg_valid_i && !reg_word_i[15];
  assign term_word  = reg_valid_i && reg_word_i[15] && reg_write_i;
  assign reg_entry  = reg_word_i[6+:UnitEntryWidth];
  assign reg_field  = reg_word_i[5:0];

  logic                         opening_q;
  logic [RunWidth-UnitEntryWidth-1:0] open_index_q;
  unit_entry_t                  open_entry_q;
  run_t                         open_run;
  terms_t                       open_terms;
  neighbour_t [Ports-1:0]       open_neighbours;

  always_ff @(posedge clk_i) begin
    if (term_word) begin
      unique case (reg_field)
        6'd0: terms_q[reg_entry].rank          <= node_t'(reg_data_i);
        6'd1: terms_q[reg_entry].eager_limit   <= reg_data_i[15:0];
        6'd2: terms_q[reg_entry].segment_bytes <= reg_data_i[15:0];
        6'd3: terms_q[reg_entry].credits       <= reg_data_i[15:0];
        default: ;
      endcase
      for (int p = 0; p < int'(Ports); p++) begin
        if (reg_field == 6'(8 + 2 * p)) begin
          neighbours_q[reg_entry][p].rank      <= node_t'(reg_data_i);
          neighbours_q[reg_entry][p].is_switch <= reg_data_i[31];
        end
        if (reg_field == 6'(9 + 2 * p)) neighbours_q[reg_entry][p].address <= node_t'(reg_data_i);
      end
    end
    if (reg_valid_i && reg_write_i && !reg_word_i[15]) begin
      if (reg_field == 6'd0) terms_q[reg_entry].communicator <= reg_data_i;
      if (reg_field == 6'd1) terms_q[reg_entry].epoch <= reg_data_i[15:0];
    end
    if (!rst_ni) begin
      opening_q    <= 1'b0;
      open_index_q <= '0;
    end else if (opening_q) begin
      open_index_q <= open_index_q + 1'b1;
      if (open_index_q == '1) opening_q <= 1'b0;
    end else if (term_word && reg_field == 6'd4) begin
      opening_q <= 1'b1;
    end
    if (term_word && reg_field == 6'd4) open_entry_q <= reg_entry;
  end
  assign open_run   = {open_entry_q, open_index_q};
  assign open_terms = terms_q[open_entry_q];
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_open
    assign open_neighbours[p] = neighbours_q[open_entry_q][p];
  end

  // ---------------------------------------------------------------- the table
  ports_t             find_valid, find_ready, find_grant, found_valid;
  logic [Ports-1:0][31:0] find_number;
  logic [Ports-1:0][15:0] find_epoch;
  logic               found;
  logic [31:0]        find_number_now;
  logic [15:0]        find_epoch_now;
  unit_entry_t        found_entry;
  entry_head_t        entry_head;
  port_entry_t [Ports-1:0] entry_ports;
  run_t               look_run;
  logic               table_valid, waits_valid;
  logic [31:0]        table_data, waits_data;

  logic [$clog2(Ports)-1:0] find_index;
  unisono_round_robin #(
    .Requests(Ports)
  ) u_find (
    .clk_i,
    .rst_ni,
    .request_i(find_valid),
    .advance_i(find_valid != '0),
    .grant_o  (find_grant),
    .index_o  (find_index)
  );
  assign find_ready = find_grant;
  always_comb begin
    find_number_now = '0;
    find_epoch_now  = '0;
    for (int p = 0; p < int'(Ports); p++) begin
      if (find_grant[p]) find_number_now |= find_number[p];
      if (find_grant[p]) find_epoch_now |= find_epoch[p];
    end
  end
  ports_t [2:0] find_q;      // who asked, on its way
  always_ff @(posedge clk_i) begin
    if (!rst_ni) find_q <= '0;
    else find_q <= {find_q[1:0], find_grant};
  end
  assign found_valid = find_q[2];

  unisono_switch_table #(
    .Ports  (Ports),
    .Entries(UnitEntries)
  ) u_table (
    .clk_i,
    .rst_ni,
    .reg_valid_i  (table_word),
    .reg_write_i,
    .reg_word_i   (reg_word_i[UnitEntryWidth+5:0]),
    .reg_data_i,
    .reg_valid_o  (table_valid),
    .reg_data_o   (table_data),
    .find_valid_i (find_valid != '0),
    .find_number_i(find_number_now),
    .find_epoch_i (find_epoch_now),
    .found_valid_o(),
    .found_o      (found),
    .found_entry_o(found_entry),
    .found_head_o (),
    .found_ports_o(),
    .look_entry_i (entry_of(look_run)),
    .look_head_o  (entry_head),
    .look_ports_o (entry_ports)
  );

  // ---------------------------------------------------------------- control
  ports_t                 event_valid, out_ready, read_ready, pop, pop_grant, take_credit;
  ports_t                 window_open, window_raise, window_close, read, read_place, send, send_by_grant;
  run_t [Ports-1:0]       event_run;
  look_t [Ports-1:0]      look;
  logic [Ports-1:0][15:0] generation, send_generation;
  logic                   discard, window_extended;
  extension_t             window_extension;
  switch_bytes_t          window_limit;
  logic [15:0]            read_bytes;
  send_t                  send_message;
  logic                   start_valid, start_ready;
  ports_t                 start_ports;
  func_e                  start_func;
  datatype_e              start_dtype;
  logic [CountBits-1:0]   start_words;
  logic [TagBits-1:0]     start_tag;
  ports_t [Tags-1:0]      masks;
  logic [Tags-1:0]        done;
  logic                   note_valid, note_waits, note_takes;
  way_t                   note_way;
  logic [4:0]             note_opcode;
  logic [31:0]            note_sequence;
  ports_t                 note_ports;

  unisono_switch_control #(
    .Ports    (Ports),
    .Datatypes(Datatypes),
    .Funcs    (Funcs),
    .WindowSegments   (WindowSegments),
    .CountBits(CountBits),
    .TagBits  (TagBits)
  ) u_control (
    .clk_i,
    .rst_ni,
    .open_valid_i     (opening_q),
    .open_run_i       (open_run),
    .open_terms_i     (open_terms),
    .look_run_o       (look_run),
    .head_i           (entry_head),
    .ports_i          (entry_ports),
    .event_valid_i    (event_valid),
    .event_run_i      (event_run),
    .look_i           (look),
    .generation_i     (generation),
    .out_ready_i      (out_ready),
    .read_ready_i     (read_ready),
    .pop_o            (pop),
    .discard_o        (discard),
    .pop_grant_o      (pop_grant),
    .take_credit_o    (take_credit),
    .window_open_o    (window_open),
    .window_extended_o(window_extended),
    .window_extension_o(window_extension),
    .window_raise_o   (window_raise),
    .window_close_o   (window_close),
    .window_limit_o   (window_limit),
    .read_o           (read),
    .read_place_o     (read_place),
    .read_bytes_o     (read_bytes),
    .send_o           (send),
    .send_by_grant_o  (send_by_grant),
    .send_message_o   (send_message),
    .send_generation_o(send_generation),
    .start_valid_o    (start_valid),
    .start_ready_i    (start_ready),
    .start_ports_o    (start_ports),
    .start_func_o     (start_func),
    .start_dtype_o    (start_dtype),
    .start_words_o    (start_words),
    .start_tag_o      (start_tag),
    .masks_o          (masks),
    .done_i           (done),
    .note_valid_o     (note_valid),
    .note_way_o       (note_way),
    .note_waits_o     (note_waits),
    .note_takes_o     (note_takes),
    .note_opcode_o    (note_opcode),
    .note_sequence_o  (note_sequence),
    .note_ports_o     (note_ports),
    .counter_messages_o,
    .counter_mismatches_o
  );

  unisono_switch_waits #(
    .Ports(Ports)
  ) u_waits (
    .clk_i,
    .rst_ni,
    .open_valid_i   (opening_q),
    .open_run_i     (open_run),
    .note_valid_i   (note_valid),
    .note_way_i     (note_way),
    .note_waits_i   (note_waits),
    .note_takes_i   (note_takes),
    .note_opcode_i  (note_opcode),
    .note_sequence_i(note_sequence),
    .note_ports_i   (note_ports),
    .read_valid_i   (reg_valid_i && !reg_write_i && reg_word_i[15]),
    .read_word_i    (reg_word_i[RunWidth+2:0]),
    .read_valid_o   (waits_valid),
    .read_data_o    (waits_data)
  );
  assign reg_valid_o = table_valid || waits_valid;
  assign reg_data_o  = waits_valid ? waits_data : table_data;

  // ---------------------------------------------------------------- the fold
  ports_t                            own_valid, own_ready;
  logic [Ports-1:0][DataBits-1:0]    own_data;
  logic [Ports-1:0][SwitchBytes-1:0] own_keep;
  ports_t                            result_valid, result_last;
  logic [Ports-1:0][DataBits-1:0]    result_data, result_upper;
  logic [Ports-1:0][1:0]             result_mode;
  logic [Ports-1:0][TagBits-1:0]     result_tag;

  unisono_switch_chain #(
    .Ports    (Ports),
    .Datatypes(Datatypes),
    .Funcs    (Funcs),
    .TagBits  (TagBits),
    .CountBits(CountBits)
  ) u_chain (
    .clk_i,
    .rst_ni,
    .start_valid_i (start_valid),
    .start_ready_o (start_ready),
    .start_ports_i (start_ports),
    .start_func_i  (start_func),
    .start_dtype_i (start_dtype),
    .start_words_i (start_words),
    .start_tag_i   (start_tag),
    .own_valid_i   (own_valid),
    .own_ready_o   (own_ready),
    .own_data_i    (own_data),
    .own_keep_i    (own_keep),
    .result_valid_o(result_valid),
    .result_data_o (result_data),
    .result_upper_o(result_upper),
    .result_keep_o (),
    .result_last_o (result_last),
    .result_mode_o (result_mode),
    .result_tag_o  (result_tag)
  );

  // ---------------------------------------------------------------- results
  ports_t                         narrow_valid, narrow_last;
  logic [Ports-1:0][DataBits-1:0] narrow_data;
  logic [Ports-1:0][TagBits-1:0]  narrow_tag;
  ports_t [Ports-1:0]             gives;     // [from][to]

  for (genvar p = 0; p < int'(Ports); p++) begin : gen_narrow
    unisono_switch_narrow #(
      .UserBits(TagBits)
    ) u_narrow (
      .clk_i,
      .rst_ni,
      .in_valid_i (result_valid[p]),
      .in_mode_i  (result_mode[p]),
      .in_data_i  (result_data[p]),
      .in_upper_i (result_upper[p]),
      .in_last_i  (result_last[p]),
      .in_user_i  (result_tag[p]),
      .out_valid_o(narrow_valid[p]),
      .out_data_o (narrow_data[p]),
      .out_last_o (narrow_last[p]),
      .out_user_o (narrow_tag[p])
    );
    assign gives[p] = narrow_valid[p] ? masks[narrow_tag[p]] : '0;
  end
  always_comb begin
    done = '0;
    for (int p = 0; p < int'(Ports); p++) if (narrow_valid[p] && narrow_last[p]) done[narrow_tag[p]] = 1'b1;
  end

  // ---------------------------------------------------------------- ports
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_port
    logic        freed_valid;
    unit_entry_t freed_entry;

    unisono_switch_ingress #(
      .BufferBytes(BufferBytes),
      .WindowSegments     (WindowSegments)
    ) u_ingress (
      .clk_i,
      .rst_ni,
      .in_valid_i      (in_valid_i[p]),
      .in_ready_o      (in_ready_o[p]),
      .in_data_i       (in_data_i[p]),
      .in_keep_i       (in_keep_i[p]),
      .in_last_i       (in_last_i[p]),
      .find_valid_o    (find_valid[p]),
      .find_ready_i    (find_ready[p]),
      .find_number_o   (find_number[p]),
      .find_epoch_o    (find_epoch[p]),
      .found_valid_i   (found_valid[p]),
      .found_i         (found),
      .found_entry_i   (found_entry),
      .forget_i        (reg_valid_i && reg_write_i),
      .open_valid_i    (opening_q),
      .open_run_i      (open_run),
      .open_terms_i    (open_terms),
      .open_neighbour_i(open_neighbours[p]),
      .look_run_i      (look_run),
      .look_o          (look[p]),
      .read_ready_o    (read_ready[p]),
      .pop_i           (pop[p]),
      .discard_i       (discard),
      .pop_grant_i     (pop_grant[p]),
      .take_credit_i   (take_credit[p]),
      .window_open_i   (window_open[p]),
      .window_extended_i (window_extended),
      .window_extension_i(window_extension),
      .window_raise_i  (window_raise[p]),
      .window_close_i  (window_close[p]),
      .window_limit_i  (window_limit),
      .window_generation_o(generation[p]),
      .read_i          (read[p]),
      .read_place_i    (read_place[p]),
      .read_bytes_i    (read_bytes),
      .event_valid_o   (event_valid[p]),
      .event_run_o     (event_run[p]),
      .freed_valid_o   (freed_valid),
      .freed_entry_o   (freed_entry),
      .own_valid_o     (own_valid[p]),
      .own_ready_i     (own_ready[p]),
      .own_data_o      (own_data[p]),
      .own_keep_o      (own_keep[p]),
      .counter_messages_o  (counter_arrived_o[p]),
      .counter_faults_o    (counter_faults_o[p]),
      .counter_bad_frames_o(counter_bad_frames_o[p])
    );

    // At most one cell gives to a port in a cycle: the control begins no fold that would.
    logic                data_valid_q;
    logic [DataBits-1:0] data, data_q;
    ports_t              from;
    for (genvar q = 0; q < int'(Ports); q++) begin : gen_from
      assign from[q] = gives[q][p];
    end
    always_comb begin
      data = '0;
      for (int q = 0; q < int'(Ports); q++) data |= narrow_data[q] & {DataBits{from[q]}};
    end
    always_ff @(posedge clk_i) begin
      data_valid_q <= rst_ni && from != '0;
      data_q       <= data;
    end

    send_t message;
    always_comb begin
      message                  = send_message;
      message.by_grant         = send_by_grant[p];
      message.token_generation = send_generation[p];
    end

    unisono_switch_egress #(
      .BufferBytes(BufferBytes)
    ) u_egress (
      .clk_i,
      .rst_ni,
      .open_valid_i    (opening_q),
      .open_entry_i    (open_entry_q),
      .open_terms_i    (open_terms),
      .open_neighbour_i(open_neighbours[p]),
      .ready_o         (out_ready[p]),
      .send_i          (send[p]),
      .message_i       (message),
      .token_i         (look[p].grant),
      .freed_valid_i   (freed_valid),
      .freed_entry_i   (freed_entry),
      .data_valid_i    (data_valid_q),
      .data_i          (data_q),
      .out_valid_o     (out_valid_o[p]),
      .out_ready_i     (out_ready_i[p]),
      .out_data_o      (out_data_o[p]),
      .out_keep_o      (out_keep_o[p]),
      .out_last_o      (out_last_o[p]),
      .out_address_o   (out_address_o[p]),
      .out_control_o   (out_control_o[p])
    );

`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        assert ((from & (from - 1'b1)) == '0) else $error("%m: two folds give to a port at once");
      end
    end
`endif
  end

endmodule
