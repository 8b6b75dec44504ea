// Compares the call of a descriptor with the one whose program is kept: what decides about its moves must be the same,
// and its buffers at least as long.
//
// The descriptor is read after its start item, in three steps of four rows; or it is caught as it is stored, while
// nothing else is at hand. Then the comparison is there (ahead_o) before the item. What is kept, and for which
// communicators, must not change meanwhile: that forgets what was caught. A call of a program of the user compares
// nothing: its slot says which entry it has, and it must be loaded, for a valid communicator.
//
// Latency: a descriptor that is read is compared 4 cycles after its item; one that is stored, 4 cycles after its last
// rows. Throughput: one descriptor at a time.

module unisono_replay_compare
  import unisono_spec_pkg::*;
  import unisono_cpu_pkg::*;
#(
  parameter int unsigned Communicators = 32,
  parameter int unsigned Entries = 16,
  parameter int unsigned Programs = 8,
  localparam int unsigned EntryWidth = $clog2(Entries),
  localparam int unsigned ProgramWidth = Programs > 1 ? $clog2(Programs) : 1
) (
  input  logic clk_i,
  input  logic rst_ni,

  // Rows as they are read: of the arguments, of the sizes (or of a program), of the other sizes.
  input  logic [2:0]            look_i,              // cycles since the item came; 0: none is looked at
  input  logic                  looking_i,
  input  logic                  idle_i,
  // Of rows other fields are of others.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [3:0][63:0]      descriptor_quad_i,
  input  logic [3:0][63:0]      store_data_i,        // or as they are stored
  // verilator lint_on UNUSEDSIGNAL
  input  logic                  store_valid_i,
  input  logic [1:0]            store_quad_i,
  input  logic                  may_catch_i,
  input  logic                  forget_i,
  input  logic [31:0]           communicator_data_i, // its state
  // What is kept.
  input  logic [Entries-1:0]    known_i,
  input  logic [Programs-1:0]   pinned_i,
  input  logic [Programs-1:0]   loaded_i,

  output call_key_t             next_key_o,          // of the rows at hand
  output call_key_t             key_o,
  output logic [31:0]           tag_o,
  output logic [EntryWidth-1:0] entry_o,
  output logic                  is_program_o,
  output logic                  match_o,
  output logic                  fits_o,
  output logic                  catches_o,           // a descriptor is being caught: its communicator is asked for
  output logic                  ahead_o,             // it has been compared

  // It is decided: the call is known, or its program will be kept in the entry, or neither.
  input  logic                  settles_i,
  input  logic                  keeps_i
);

  typedef logic [EntryWidth-1:0] entry_t;
  typedef logic [7:0] mark_t;
  // Bytes of src, dst, scratch and params. The call front end takes none with more bits.
  typedef logic [3:0][47:0] sizes_t;

  localparam logic [2:0] LookKey = 3'd1;
  localparam logic [2:0] LookTable = 3'd2;
  localparam logic [2:0] LookCompare = 3'd3;

  // What is stored, while nothing else is at hand: the next four rows of the descriptor that came last. `ahead_q` says
  // how many fours were caught, the last of `ready_q` that they have been compared with what is kept, and the
  // communicator's state too.
  logic catches;
  logic [2:0] ahead_q, ready_q;
  logic [3:0][63:0] quad;                  // the rows at hand: read, or being stored
  assign catches = store_valid_i && may_catch_i &&
                   (store_quad_i == 2'd0 || ahead_q == 3'(store_quad_i));
  assign quad = looking_i ? descriptor_quad_i : store_data_i;

  call_key_t key_q, there_q;
  sizes_t sizes_q, sizes_there_q;
  logic [1:0][47:0] sizes_last, sizes_upper;   // of two regions, as they come; of the last two
  assign sizes_last = {quad[3][47:0], quad[1][47:0]};
  assign sizes_upper = looking_i ? sizes_last : sizes_q[3:2];
  logic [31:0] tag_q;
  entry_t entry_q;
  logic exists_q, match_q, fits_q, known_there_q;

  call_key_t key_in;
  entry_t home;
  mark_t mark_in, mark_q;
  assign key_in = '{count: quad[3], root: quad[1][63:32],
                    communicator: quad[1][31:0], flags: quad[0][32+:DescriptorFlags],
                    head: quad[0][31:0], state: '0};

  logic is_program;
  logic [ProgramWidth-1:0] program_slot;
  assign is_program = key_q.head[7:0] == CollectiveProgram;
  assign program_slot = key_q.count[32+:ProgramWidth];

  unisono_replay_home #(.Entries(Entries), .Programs(Programs)) u_home (
    .clk_i, .rst_ni, .key_i(key_in), .pinned_i, .entry_o(home), .mark_o(mark_in),
    .settles_i(settles_i && !is_program), .keeps_i(settles_i && keeps_i), .settled_entry_i(entry_q),
    .settled_mark_i(mark_q)
  );

  (* ram_style = "distributed" *) call_key_t keys [Entries];
  (* ram_style = "distributed" *) sizes_t sizes [Entries];

  always_ff @(posedge clk_i) begin
    if (look_i == LookKey || (catches && store_quad_i == 2'd0)) begin
      key_q <= key_in;
      tag_q <= quad[2][31:0];
      exists_q <= key_in.communicator < 32'(Communicators);
      entry_q <= home;
      mark_q <= mark_in;
    end
    if (catches && store_quad_i == 2'd1) sizes_q[1:0] <= sizes_last;
    if (catches && store_quad_i == 2'd2) sizes_q[3:2] <= sizes_last;
    if (idle_i && ahead_q > 3'd1) key_q.state <= exists_q ? communicator_data_i : '0;
    if (idle_i) begin
      there_q <= keys[entry_q];
      sizes_there_q <= sizes[entry_q];
      known_there_q <= known_i[entry_q];
    end
    if (look_i == LookTable) begin
      key_q.state <= exists_q ? communicator_data_i : '0;
      sizes_q[1:0] <= sizes_last;
      if (is_program) begin
        key_q.count <= descriptor_quad_i[1];
        entry_q <= ~entry_t'(descriptor_quad_i[1][32+:ProgramWidth]);
      end
      there_q <= keys[entry_q];
      sizes_there_q <= sizes[entry_q];
      known_there_q <= known_i[entry_q];
    end
    if (look_i == LookCompare) sizes_q[3:2] <= sizes_last;
    if (look_i == LookCompare || idle_i) begin
      match_q <= is_program ? loaded_i[program_slot] && key_q.state[CommunicatorValid] &&
                              !key_q.state[CommunicatorRevoked]
                            : known_there_q && there_q == key_q;
      fits_q <= is_program || (sizes_q[0] >= sizes_there_q[0] && sizes_q[1] >= sizes_there_q[1] &&
                               sizes_upper[0] >= sizes_there_q[2] && sizes_upper[1] >= sizes_there_q[3]);
    end
  end

  always_ff @(posedge clk_i) begin
    ready_q <= idle_i ? {ready_q[1:0], ahead_q == 3'd4} : '0;
    if (catches) ahead_q <= 3'(store_quad_i) + 3'd1;
    if (!rst_ni || (store_valid_i && !catches) || forget_i) begin
      ahead_q <= '0;
      ready_q <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (settles_i && keeps_i) begin
      keys[entry_q] <= key_q;
      sizes[entry_q] <= sizes_q;
    end
  end

  assign next_key_o   = key_in;
  assign key_o        = key_q;
  assign tag_o        = tag_q;
  assign entry_o      = entry_q;
  assign is_program_o = is_program;
  assign match_o      = match_q;
  assign fits_o       = fits_q;
  assign catches_o    = ahead_q != '0;
  assign ahead_o      = ready_q[2];

endmodule
