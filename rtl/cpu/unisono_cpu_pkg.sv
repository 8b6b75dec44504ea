// What the microcontroller block and the rest of the engine, and the block and its firmware, agree
// on.
//
// The firmware's side is firmware/machine/port.hpp; tests/rtl/cpu checks that both say the same.
package unisono_cpu_pkg;

  // A block uses only a part of these.
  // verilator lint_off UNUSEDPARAM

  // Active calls, and bits of their number.
  localparam int unsigned Slots = unisono_spec_pkg::MaxActiveCalls;
  localparam int unsigned SlotWidth = $clog2(Slots);

  // Why the microcontroller is needed.
  typedef enum logic [1:0] {
    // a call was admitted to the slot, whose window is empty
    WorkStart = 2'd1,
    // the slot has room for one more generation step
    WorkMore = 2'd2,
    // the communicator table was changed: forget what was derived from it
    WorkControl = 2'd3
  } work_kind_e;

  typedef struct packed {
    work_kind_e kind;
    logic [SlotWidth-1:0] slot;
  } work_t;

  // How the messages of a call are matched.
  typedef enum logic [1:0] {
    SpaceLocal = 2'd0,
    SpaceCollective = 2'd1,
    SpacePointToPoint = 2'd2
  } space_e;

  // What holds for every move of a call.
  typedef struct packed {
    // CRC-32C of what the ranks must agree on
    logic [31:0] signature;
    // collective sequence, which unisono_replay puts in; or user tag for point to point
    logic [31:0] sequence_or_tag;
    // position in the communicator table
    logic [7:0] communicator;
    // position in the algorithm table plus one
    logic [7:0] algorithm;
    space_e space;
    unisono_spec_pkg::datatype_e dtype;
  } context_t;

  // An instruction of the custom-function unit.
  typedef struct packed {
    logic [6:0]  operation;
    logic [2:0]  group;
    logic [31:0] first;
    logic [31:0] second;
  } instruction_t;

  // 32-bit words of an entry of the communicator table, eight an entry.
  localparam int unsigned CommunicatorWords = 8;
  localparam logic [2:0] CommunicatorState = 3'd0;      // bits below; generation, epoch
  localparam logic [2:0] CommunicatorNumber = 3'd1;     // on the wire
  localparam logic [2:0] CommunicatorRank = 3'd2;       // own
  localparam logic [2:0] CommunicatorSize = 3'd3;       // ranks
  localparam logic [2:0] CommunicatorGroup = 3'd4;      // 15:0 ranks of a group, 0 = one level; 31:16 switch above, 0 = none
  localparam logic [2:0] CommunicatorEager = 3'd5;      // largest eager message, bytes
  localparam logic [2:0] CommunicatorDatatypes = 3'd6;  // bit n: datatype n can be reduced by all
  localparam logic [2:0] CommunicatorFuncs = 3'd7;      // bit n: func n
  // Bits of the state word. 3 to 15 count the changes of the entry, 16 to 31 are the epoch.
  localparam int unsigned CommunicatorValid = 0;
  localparam int unsigned CommunicatorRevoked = 1;
  localparam int unsigned CommunicatorCrowded = 2;

  // Custom instructions: opcode 0x0B, R type. funct3 is the group, funct7 the rest.
  localparam logic [2:0] GroupControl = 3'd0;
  localparam logic [2:0] GroupPlace = 3'd1;
  localparam logic [2:0] GroupPeer = 3'd2;
  localparam logic [2:0] GroupBuild = 3'd3;
  localparam logic [2:0] GroupDescriptor = 3'd4;
  localparam logic [2:0] GroupCommunicator = 3'd5;
  localparam logic [2:0] GroupCheck = 3'd6;
  localparam logic [2:0] GroupCovers = 3'd7;

  // GroupControl
  localparam logic [6:0] ControlNext = 7'd0;     // waits for the next item, selects its slot
  localparam logic [6:0] ControlEnd = 7'd1;      // the program has no more moves
  localparam logic [6:0] ControlFail = 7'd2;     // rs1: error code
  // rs1: space | algorithm << 8 | dtype << 16, rs2: tag, point to point
  localparam logic [6:0] ControlContext = 7'd3;
  localparam logic [6:0] ControlKeep = 7'd4;     // rs1: place of the plan of the call started last
  localparam logic [6:0] ControlClear = 7'd5;    // forget a fault
  localparam logic [6:0] ControlSign = 7'd6;     // rs1: signature of the next context
  localparam logic [6:0] ControlForget = 7'd7;   // rs1: mask of the plans to forget

  // GroupPlace: funct7 = {from rs2, indirect, region[2:0], which}; rs1, rs2: offset.
  // From rs2: region in bits 24 to 28, indirect in bit 31.
  localparam logic [1:0] PlaceTake = 2'd0;
  localparam logic [1:0] PlaceWith = 2'd1;
  localparam logic [1:0] PlaceKeep = 2'd2;
  localparam logic [1:0] PlaceRemote = 2'd3;  // indirect: the place that is written

  // GroupPeer: funct7 = {mode, what}; rs1: peer, rs2: tag
  localparam logic [1:0] PeerArrive = 2'd0;
  localparam logic [1:0] PeerSend = 2'd1;
  localparam logic [1:0] PeerFetch = 2'd2;
  localparam logic [1:0] PeerStore = 2'd3;

  // GroupBuild
  localparam logic [6:0] BuildBegin = 7'd0;  // rs1: func << 8 | dtype << 16; gives a ticket
  localparam logic [6:0] BuildCount = 7'd1;
  localparam logic [6:0] BuildCountIndirect = 7'd2;
  localparam logic [6:0] BuildSignal = 7'd3;
  localparam logic [6:0] BuildSwap = 7'd4;
  localparam logic [6:0] BuildAfter = 7'd5;
  localparam logic [6:0] BuildStreamAfter = 7'd6;
  localparam logic [6:0] BuildFunction = 7'd7;
  localparam logic [6:0] BuildTakeStream = 7'd8;
  localparam logic [6:0] BuildKeepStream = 7'd9;
  localparam logic [6:0] BuildAfterAll = 7'd10;
  localparam logic [6:0] BuildEmit = 7'd11;   // rs1: ticket
  localparam logic [6:0] BuildList = 7'd12;   // rs1: word; gives its index
  localparam logic [6:0] BuildMoves = 7'd13;  // gives the moves emitted so far

  // GroupDescriptor: funct7 = 32-bit word of the call descriptor. Of word 1 the reserved bits read
  // as 0.
  localparam int unsigned DescriptorFlags = 13;
  // GroupCommunicator: funct7 = word of the communicator of the call started last, 0 if there is
  // none
  // GroupCovers: funct7 = 64-bit word of the descriptor; rs1, rs2: bytes needed; gives 1 if it is
  // less

  // GroupCheck, CRC-32C of a signature
  localparam logic [6:0] CheckBegin = 7'd0;
  localparam logic [6:0] CheckLong = 7'd1;   // rs1, rs2
  localparam logic [6:0] CheckWord = 7'd2;   // rs1
  localparam logic [6:0] CheckHalf = 7'd3;   // rs1
  localparam logic [6:0] CheckValue = 7'd4;  // gives the signature, 1 for 0

  // GroupCheck, division of 64 bits by 32, in this order
  localparam logic [6:0] DivideTotal = 7'd8;     // rs1, rs2
  localparam logic [6:0] DivideQuotient = 7'd9;  // rs1: divisor; gives the low word
  localparam logic [6:0] DivideHigh = 7'd10;     // gives the high word
  localparam logic [6:0] DivideRest = 7'd11;     // gives the rest

  // GroupCheck, bits of rs1
  localparam logic [6:0] BitWidth = 7'd12;    // gives the position of the highest one, plus one
  localparam logic [6:0] BitReverse = 7'd13;  // gives them in reverse order

  // Answer of ControlNext: kind in bits 0 and 1, slot in bits 3 to 5. With WorkStart, the place of
  // the call's plan in bits 7 to 10, and bit 2 if the plan there is that of this very call. Or bit
  // 31, if the slot that was stepped last has a fault, whose code is in bits 8 to 23; kind is 0
  // then.
  localparam int unsigned NextHitBit = 2;
  localparam int unsigned NextSlotBit = 3;
  localparam int unsigned NextPlanBit = 7;
  localparam int unsigned NextFaultCodeBit = 8;
  localparam int unsigned NextFaultBit = 31;

  // Plans that the firmware keeps.
  localparam int unsigned Plans = 16;

  // verilator lint_on UNUSEDPARAM

  // What decides which moves a call has.
  typedef struct packed {
    logic [63:0] count;
    logic [31:0] root;
    logic [31:0] communicator;
    logic [DescriptorFlags-1:0] flags;
    logic [31:0] head;
    logic [31:0] state;
  } call_key_t;

endpackage
