// Checks a header, and tells the first that does not hold; see unisono_rx.
//
// Latency: 3 cycles. Throughput: a header per cycle, in order, without back-pressure. Restrictions: `found_i` comes 2
// cycles after the request, what is known of a communicator and a member 1 cycle; answers come from registers.

module unisono_rx_check
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_rx_pkg::*;
(
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                valid_i,
  input  rx_header_t          header_i,

  // To unisono_communicators.
  output logic                find_valid_o,
  output logic [31:0]         find_number_o,
  output logic [15:0]         find_epoch_o,
  input  logic                found_i,
  input  communicator_t       found_communicator_i,
  output communicator_t       entry_communicator_o,
  input  communicator_entry_t entry_i,
  output communicator_t       peer_communicator_o,
  output rank_t               peer_rank_o,
  input  peer_entry_t         peer_i,

  output logic                verdict_valid_o,
  output rx_verdict_t         verdict_o
);

  assign find_valid_o  = valid_i;
  assign find_number_o = header_i.header.communicator;
  assign find_epoch_o  = header_i.header.epoch;

  typedef struct packed {
    session_t    session;
    rank_t       source;
    logic        source_fits;
    rank_t       destination;
    logic        destination_fits;
    segment_bytes_t segment;
    logic        segment_fits;
    logic        length_right;
    logic [31:0] checksum;
    fault_e      fault;
  } check_t;

  check_t      check1, check2_q, check3_q;
  logic        valid2_q, valid3_q, valid4_q;
  logic        carries2_q, first_wrong2_q, last2_q;
  logic [48:0] end2_q;
  logic [47:0] message2_q;
  logic        extent_wrong3_q;
  logic [31:0] crc;

  always_comb begin
    check1.session          = header_i.session;
    check1.source           = header_i.header.source[RankWidth-1:0];
    check1.source_fits      = header_i.header.source[31:RankWidth] == '0;
    check1.destination      = header_i.header.destination[RankWidth-1:0];
    check1.destination_fits = header_i.header.destination[31:RankWidth] == '0;
    check1.segment          = header_i.header.segment_bytes[SegmentWidth-1:0];
    check1.segment_fits     = header_i.header.segment_bytes <= 32'(MaxSegment);
    check1.length_right     = header_i.header.segment_bytes == 32'(header_i.bytes);
    check1.checksum         = header_i.header.checksum;
    if (header_i.is_short) check1.fault = FaultShort;
    else if (header_i.broken) check1.fault = FaultTransport;
    else if (header_i.header.magic != 16'(Magic)) check1.fault = FaultMagic;
    else if (header_i.header.version != 4'(WireVersion)) check1.fault = FaultVersion;
    else if (!header_well_formed(header_i.header) || header_i.header.trailer) check1.fault = FaultReserved;
    else check1.fault = FaultNone;
  end

  always_ff @(posedge clk_i) begin
    check2_q       <= check1;
    carries2_q     <= header_i.header.type_ inside {MessageTypeEager, MessageTypeWrite,
                                            MessageTypeAggregate};
    first_wrong2_q <= header_i.header.first && header_i.header.offset != '0;
    last2_q        <= header_i.header.last;
    end2_q         <= 49'(header_i.header.offset) + 49'(header_i.header.segment_bytes);
    message2_q     <= header_i.header.message_bytes;

    check3_q        <= check2_q;
    extent_wrong3_q <= carries2_q && (end2_q > {1'b0, message2_q} || first_wrong2_q ||
                                      (last2_q && end2_q != {1'b0, message2_q}));
  end

  unisono_crc32c u_crc (
    .clk_i,
    .valid_i(valid_i),
    .data_i (header_i.header[479:0]),
    .crc_o  (crc)
  );

  // Stage 3: the checksum is known, and whether there is such a communicator.
  fault_e fault3;

  always_comb begin
    if (check3_q.fault != FaultNone) fault3 = check3_q.fault;
    else if (crc != check3_q.checksum) fault3 = FaultChecksum;
    else if (!check3_q.length_right) fault3 = FaultShort;
    else if (!check3_q.segment_fits || extent_wrong3_q) fault3 = FaultLength;
    else if (!found_i) fault3 = FaultCommunicator;
    else fault3 = FaultNone;
  end

  assign entry_communicator_o = found_communicator_i;
  assign peer_communicator_o  = found_communicator_i;
  assign peer_rank_o          = check3_q.source;

  // Stage 4: so are the communicator's limits and its member.
  check_t        check4_q;
  communicator_t communicator4_q;
  fault_e        fault;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid2_q <= 1'b0;
      valid3_q <= 1'b0;
      valid4_q <= 1'b0;
    end else begin
      valid2_q <= valid_i;
      valid3_q <= valid2_q;
      valid4_q <= valid3_q;
    end
    check4_q        <= check3_q;
    check4_q.fault  <= fault3;
    communicator4_q <= found_communicator_i;
  end

  logic source_right, destination_right;

  // Whichever channel a message came by, its session is its member's.
  assign source_right      = check4_q.source_fits && {1'b0, check4_q.source} < entry_i.size &&
                             peer_i.valid && peer_i.session[14:0] == check4_q.session[14:0];
  assign destination_right = check4_q.destination_fits && check4_q.destination == entry_i.rank;

  always_comb begin
    if (check4_q.fault != FaultNone) fault = check4_q.fault;
    else if (32'(check4_q.segment) > entry_i.segment_bytes) fault = FaultLength;
    else if (!source_right || !destination_right) fault = FaultMember;
    else fault = FaultNone;
  end

  logic unused_bits;
  assign unused_bits = ^{entry_i.number, entry_i.epoch, entry_i.eager_limit, entry_i.rx_buffers, entry_i.opens,
                         entry_i.kept, entry_i.members,
                         peer_i.session[15], check4_q.session[15], check4_q.segment_fits,
                         check4_q.length_right, check4_q.checksum, header_i.payload};

  assign verdict_valid_o = valid4_q;
  assign verdict_o       = '{fault, communicator4_q};

endmodule
