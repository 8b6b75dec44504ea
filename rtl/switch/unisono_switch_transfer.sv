// A message of a switch that is under way: what each run carries, up and down, how much of it may go next, and what it
// waits for.
//
// A message goes in segments. The next one goes when it is here from all senders, and within the limits of all
// receivers. Those that have granted are written to; the others have a buffer, for which a credit has been taken. So it
// is with senders: who has not sent all into a buffer is granted a window (unisono_switch_windows).
//
// Latency: the record of a way is there 1 cycle after read_i, what may go 1 cycle after that or after take_i.
// Restrictions: way_i stands 2 cycles before read_i, and over a look; a way is read 2 cycles after a change or later.

// Records carry more than one block looks at.
// verilator lint_off UNUSEDSIGNAL

module unisono_switch_transfer
  import unisono_spec_pkg::*;
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports = 8,           // 4 to MaxPorts
  parameter int unsigned WindowSegments = 4,  // of a run's window
  parameter int unsigned CountWidth = 5       // of folds under way
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  open_valid_i,    // the run begins anew
  input  run_t                  open_run_i,

  // What is looked at.
  input  way_t                  way_i,
  input  terms_t                terms_i,
  input  look_t [Ports-1:0]     look_i,          // in the cycle behind read_i
  input  look_t [Ports-1:0]     look_q_i,        // the same, from the next cycle on
  input  logic                  read_i,          // the message of this way is looked at, if there is one
  output logic                  active_o,        // there is one
  input  logic                  take_i,          // or this one, which begins
  input  transfer_t             message_i,
  input  logic                  immediate_i,     // it goes at once
  input  logic [Ports-1:0]      in_i,
  input  logic [Ports-1:0]      in_place_i,
  input  logic [Ports-1:0]      out_i,
  input  logic [Ports-1:0]      out_eager_i,

  // The message.
  output transfer_t             message_o,
  output logic                  immediate_o,
  output logic [Ports-1:0]      in_o,
  output logic [Ports-1:0]      in_place_o,      // of these, data are in a buffer
  output logic [Ports-1:0]      out_o,
  output logic [Ports-1:0]      by_grant_o,      // receivers that are written to
  output logic [Ports-1:0]      by_write_o,      // senders that write
  output logic [Ports-1:0]      out_eager_o,
  output logic [Ports-1:0]      asks_o,          // receivers that are asked

  // Its next segment.
  output logic [15:0]           length_o,
  output logic                  last_o,
  output logic                  here_o,          // it is here, and all receivers take it
  output logic [Ports-1:0]      missing_o,       // ports for which it waits
  output logic                  takes_o,         // for these to take
  output logic                  differs_o,       // a receiver's grant says that it calls something else

  // The window of its senders.
  input  logic [CountWidth-1:0] outstanding_next_i, // segments of this way that are folded in the next cycle
  output logic                  raises_o,
  output switch_bytes_t         window_end_o,
  output logic                  window_extended_o,
  output extension_t            window_extension_o,

  // What becomes of it.
  input  logic                  asks_i,          // its receivers have been asked: it is the way's
  input  logic                  windows_i,       // its senders have been granted, or further
  input  logic                  segment_i,       // its segment has gone
  input  logic                  keep_i,          // with these: the record changes
  input  logic                  over_i,
  input  logic                  fails_i          // the run ends, both ways
);

  if (Ports < 4 || Ports > MaxPorts) begin : gen_bad_ports
    $error("unisono_switch_transfer: Ports must be 4 to %0d", MaxPorts);
  end

  typedef logic [Ports-1:0] ports_t;
  typedef struct packed {
    ports_t in;
    ports_t in_place;
    ports_t out;
    ports_t out_eager;
  } masks_t;

  (* ram_style = "distributed" *) transfer_t transfers_q [Ways];
  (* ram_style = "distributed" *) masks_t    masks_q [Ways];
  logic [Ways-1:0] active_q;

  // ---------------------------------------------------------------- the message looked at
  transfer_t t_q, kept;
  masks_t    m_q;
  run_t      run;
  assign run = way_i[RunWidth:1];

  always_ff @(posedge clk_i) begin
    if (read_i) begin
      t_q         <= transfers_q[way_i];
      m_q         <= masks_q[way_i];
      active_o    <= active_q[way_i];
      immediate_o <= 1'b0;
    end
    if (take_i) begin
      t_q         <= message_i;
      m_q         <= '{in_i, in_place_i, out_i, out_eager_i};
      immediate_o <= immediate_i;
    end
    if (keep_i) begin
      transfers_q[way_i] <= kept;
      masks_q[way_i]     <= m_q;
    end
  end
  for (genvar w = 0; w < int'(Ways); w++) begin : gen_way
    localparam run_t Run = run_t'(w >> 1);
    always_ff @(posedge clk_i) begin
      if (!rst_ni || (open_valid_i && open_run_i == Run) || (fails_i && run == Run)) active_q[w] <= 1'b0;
      else if (way_i == way_t'(w) && (asks_i || over_i)) active_q[w] <= asks_i;
    end
  end

  assign message_o   = t_q;
  assign in_o        = m_q.in;
  assign in_place_o  = m_q.in_place;
  assign out_o       = m_q.out;
  assign out_eager_o = m_q.out_eager;
  assign by_grant_o  = m_q.out & ~m_q.out_eager;
  assign by_write_o  = m_q.in & ~m_q.in_place;

  ports_t switches;
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_switch
    assign switches[p] = look_q_i[p].neighbour.is_switch;
  end
  assign asks_o = m_q.out & (t_q.bytes <= switch_bytes_t'(terms_i.eager_limit) ? ~m_q.out_eager : switches);

  // ---------------------------------------------------------------- the next segment
  // Known a cycle after the message: of what begins, from where it comes.
  switch_bytes_t segment, done, left, end_q;
  logic [15:0]   length;
  logic          last, last_q;
  logic [15:0]   length_q;
  assign segment = switch_bytes_t'(terms_i.segment_bytes);
  assign done    = take_i ? '0 : t_q.done;
  assign left    = take_i ? message_i.bytes : t_q.bytes - t_q.done;
  assign last    = left <= segment;
  assign length  = last ? left[15:0] : terms_i.segment_bytes;
  always_ff @(posedge clk_i) begin
    last_q   <= last;
    length_q <= length;
    end_q    <= done + switch_bytes_t'(length);
  end
  assign last_o   = last_q;
  assign length_o = length_q;

  // Whose grant it is, is known with the record. What begins is granted nothing yet, or needs no grant.
  logic   read_q;
  ports_t granted_q, wrong_q, out_within, in_here, takers;
  always_ff @(posedge clk_i) read_q <= read_i;
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_port
    logic granted;
    assign granted = look_i[p].has_grant && look_i[p].grant.sequence_ == t_q.sequence_;
    always_ff @(posedge clk_i) begin
      if (take_i) {granted_q[p], wrong_q[p]} <= '0;
      else if (read_q) {granted_q[p], wrong_q[p]} <= {granted, granted && look_i[p].grant.signature != t_q.signature};
    end
    assign out_within[p] = granted_q[p] && look_q_i[p].grant.limit >= end_q;
    assign in_here[p]    = look_q_i[p].arrived >= end_q && (length_q != '0 || look_q_i[p].whole);
  end
  assign takers    = by_grant_o & ~out_within;
  assign here_o    = (by_write_o & ~in_here) == '0 && takers == '0;
  assign missing_o = t_q.gone ? '0 : (by_write_o & ~in_here) | takers;
  assign takes_o   = missing_o == takers;
  assign differs_o = (by_grant_o & wrong_q) != '0;

  // ---------------------------------------------------------------- the window
  unisono_switch_windows #(
    .WindowSegments(WindowSegments),
    .CountWidth    (CountWidth)
  ) u_windows (
    .clk_i,
    .rst_ni,
    .run_i             (run),
    .segment_i         (terms_i.segment_bytes),
    .bytes_i           (t_q.bytes),
    .done_i            (t_q.done),
    .outstanding_next_i,
    .granted_i         (t_q.granted),
    .limit_i           (t_q.limit),
    .extended_i        (t_q.extended),
    .extension_i       (t_q.extension),
    .lends_o           (window_extended_o),
    .free_o            (window_extension_o),
    .end_o             (window_end_o),
    .raises_o,
    .grant_i           (windows_i && !t_q.granted),
    .over_i,
    .fails_i,
    .open_valid_i,
    .open_run_i
  );

  always_comb begin
    kept = t_q;
    if (windows_i) begin
      kept.granted = 1'b1;
      kept.limit   = window_end_o;
      if (!t_q.granted) begin
        kept.extended  = window_extended_o;
        kept.extension = window_extension_o;
      end
    end
    if (segment_i) begin
      kept.done = end_q;
      kept.gone = last_q;
    end
  end

endmodule
