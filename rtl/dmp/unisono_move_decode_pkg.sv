// Why a move was refused.

package unisono_move_decode_pkg;

  // A design uses only a part of this.
  // verilator lint_off UNUSEDPARAM

  // The first check that fails, in this order. From ReasonNoStreams on the move is well formed, and
  // asks for what this engine cannot do.
  typedef enum logic [4:0] {
    ReasonNone = 5'd0,
    ReasonFields = 5'd1,           // reserved bits, or an unknown value of an enumeration
    ReasonDistance = 5'd2,         // a segment dependency of 32 or more
    ReasonOperand = 5'd3,          // op0, op1 or the local result is of a kind that it must not be
    ReasonCast = 5'd4,             // a conversion; this version has none
    ReasonPort = 5'd5,             // a stream port that cannot be
    ReasonParams = 5'd6,           // an indirect count or offset that is no multiple of 8
    ReasonStrided = 5'd7,          // a strided move; this version has none
    ReasonPeer = 5'd8,             // no member, an empty list, or a mode that must not be
    ReasonRegion = 5'd9,           // remote memory that peers cannot reach
    ReasonFunc = 5'd10,            // the function does not go with the operands
    ReasonUndefined = 5'd11,       // the function is not defined on the datatype
    ReasonCount = 5'd12,           // elements, and no operand, no datatype or no result
    ReasonSignal = 5'd13,          // signal set, and neither a message nor an arrival
    ReasonNoStreams = 5'd16,
    ReasonNoRemoteMemory = 5'd17,
    ReasonNoLists = 5'd18,         // a list of peers to send to
    ReasonNoFanIn = 5'd19,         // an arrival from a list of peers
    ReasonNoFunc = 5'd20,          // the plugin lacks the function, or the datatype
    ReasonNoRendezvous = 5'd21
  } reason_e;

  // verilator lint_on UNUSEDPARAM

endpackage
