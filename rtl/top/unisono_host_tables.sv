// The host's way to the tables of the engine: communicators, as microcontroller and data path read them, members, the
// registers of the transport, and the loading of programs.
//
// A communicator has 16 words in the exchange memory. The first 8 are kept here, for the microcontroller; the last 8,
// and the members, are those of unisono_communicators; the transport's words are those of its own registers.
//
// Latency: an access to the microcontroller's words is done in the next cycle; others take as long as their owner does.
// Throughput: one access at a time; ready_o tells. The microcontroller reads a word per cycle, one cycle late.

module unisono_host_tables
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
#(
  localparam int unsigned MapWidth = $clog2(ExchangeBytes),
  localparam int unsigned RegWidth = 11,
  localparam int unsigned PlaceWidth = CommunicatorWidth + 3
) (
  input  logic clk_i,
  input  logic rst_ni,

  // From the exchange memory: one cycle; address and data stay while ready_o is low.
  input  logic                write_i,
  input  logic                read_i,
  input  logic [MapWidth-1:2] address_i,
  input  logic [31:0]         data_i,
  output logic                ready_o,
  output logic                valid_o,
  output logic [31:0]         data_o,

  // The microcontroller: words of communicators, one cycle after the address; and a word has changed.
  input  logic [PlaceWidth-1:0] place_i,
  output logic [31:0]           place_data_o,
  output logic                  changed_o,

  // Tables of the data path; see unisono_communicators.
  output logic                reg_valid_o,
  input  logic                reg_ready_i,
  output logic                reg_write_o,
  output logic [RegWidth-1:0] reg_word_o,
  output logic [31:0]         reg_data_o,
  input  logic                reg_valid_i,
  input  logic [31:0]         reg_data_i,

  // Loading of programs; see unisono_replay.
  output logic        program_valid_o,
  input  logic        program_ready_i,
  output logic [2:0]  program_word_o,
  output logic [31:0] program_data_o,
  input  logic [31:0] program_state_i,

  // Registers of the transport; see unisono_poe_frame.
  output logic        poe_valid_o,
  input  logic        poe_ready_i,
  output logic        poe_write_o,
  output logic [15:0] poe_addr_o,
  output logic [31:0] poe_wdata_o,
  input  logic [31:0] poe_rdata_i
);

  localparam int unsigned TransportSessions = 64;

  typedef enum logic [2:0] {
    Microcontroller,
    DataPath,
    Transport,
    Program,
    Answer                       // of the data path, to a read
  } state_e;

  logic [31:0] address;
  logic of_transport, of_programs, of_members, of_data_path;
  assign address      = 32'({address_i, 2'b00});
  assign of_transport = address < ExchangeTransportOffset + ExchangeTransportBytes;
  assign of_programs  = !of_transport && address < ExchangeProgramsOffset + ExchangeProgramsBytes;
  assign of_members   = address >= ExchangeMembersOffset;
  assign of_data_path = of_members || (!of_transport && !of_programs && address_i[5]);

  // ------------------------------------------------------------------------------- microcontroller's words

  localparam int unsigned Words = Communicators * 8;
  logic [31:0] host_words [Words];
  logic [31:0] words [Words];
  logic [PlaceWidth-1:0] host_place;
  logic write_word;
  assign host_place = {address_i[6+:CommunicatorWidth], address_i[4:2]};
  assign write_word = write_i && !of_transport && !of_programs && !of_data_path;

  // What was never written since the reset is not valid, whatever the memory holds.
  logic [Communicators-1:0] written_q;
  logic place_known_q;
  logic [31:0] place_word_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) written_q <= '0;
    else if (write_word && host_place[2:0] == '0) written_q[host_place[3+:CommunicatorWidth]] <= 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (write_word) words[host_place] <= data_i;
    place_word_q  <= words[place_i];
    place_known_q <= written_q[place_i[3+:CommunicatorWidth]];
  end
  assign place_data_o = place_known_q ? place_word_q : '0;
  always_ff @(posedge clk_i) begin
    if (write_word) host_words[host_place] <= data_i;
  end
  assign changed_o = write_word;

  // ------------------------------------------------------------------------------------------- one access

  state_e state_d, state_q;
  logic write_q, valid_d;
  logic [31:0] data_d;

  always_comb begin
    state_d = state_q;
    valid_d = 1'b0;
    data_d  = written_q[host_place[3+:CommunicatorWidth]] ? host_words[host_place] : '0;
    unique case (state_q)
      Microcontroller: begin
        if (write_i || read_i) begin
          if (of_transport) state_d = Transport;
          else if (of_programs) state_d = Program;
          else if (of_data_path) state_d = DataPath;
          else valid_d = read_i;
        end
      end
      DataPath: begin
        if (reg_ready_i) state_d = write_q ? Microcontroller : Answer;
      end
      Transport: begin
        if (poe_ready_i) begin
          state_d = Microcontroller;
          valid_d = !write_q;
          data_d  = poe_rdata_i;
        end
      end
      Program: begin
        data_d = program_state_i;
        if (write_q ? program_ready_i : 1'b1) begin
          state_d = Microcontroller;
          valid_d = !write_q;
        end
      end
      default: begin  // Answer
        data_d = reg_data_i;
        if (reg_valid_i) begin
          state_d = Microcontroller;
          valid_d = 1'b1;
        end
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Microcontroller;
      valid_o <= 1'b0;
    end else begin
      state_q <= state_d;
      valid_o <= valid_d;
    end
    if (write_i || read_i) write_q <= write_i;
    data_o <= data_d;
  end
  assign ready_o = state_q == Microcontroller;

  assign reg_valid_o = state_q == DataPath;
  assign reg_write_o = write_q;
  assign reg_word_o  = of_members ? {1'b1, address_i[2+:RegWidth-1]}
                                  : RegWidth'({address_i[6+:CommunicatorWidth], address_i[4:2]});
  assign reg_data_o  = data_i;

  assign program_valid_o = state_q == Program && write_q;
  assign program_word_o  = address_i[4:2];
  assign program_data_o  = data_i;

  // Sessions first; what follows are the transport's counters, limit and sizes.
  logic [7:0] transport_word;
  assign transport_word = address_i[9:2];
  assign poe_valid_o = state_q == Transport;
  assign poe_write_o = write_q;
  assign poe_addr_o  = transport_word < 8'(TransportSessions) ? 16'(transport_word)
                     : transport_word < 8'(TransportSessions + 16) ? {12'h800, transport_word[3:0]}
                     : {12'h810, transport_word[3:0]};
  assign poe_wdata_o = data_i;

  if (Communicators * 64 > ExchangeCommunicatorsBytes || Ranks * Communicators * 4 > ExchangeMembersBytes)
  begin : gen_check_map
    $error("the tables do not fit the exchange memory");
  end

endmodule
