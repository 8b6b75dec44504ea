// Puts a move together, a group of its fields with each instruction.
//
// One move is built at a time. Each gets a ticket when it is begun, which must be the last one when it is given out:
// that tells whether two have been mixed.
//
// Latency: an instruction takes effect in the next cycle. Throughput: an instruction per cycle. Restrictions: what a
// move has no bits for is told (`range_o`), and cut off.

module unisono_cpu_build
  import unisono_spec_pkg::*;
  import unisono_cpu_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         valid_i,                    // the instruction is carried out
  input  instruction_t instruction_i,
  output move_t        move_o,                     // as it is up to now
  output logic [31:0]  ticket_o,                   // of a move that is begun
  output logic         stale_o,                    // the ticket given is not that of the move at hand
  output logic         range_o
);

  move_t       build_q;
  func_e       call_func_q;
  logic        override_q;
  logic        open_q;
  logic [31:0] ticket_q;

  logic [2:0]  group;
  logic [6:0]  operation;
  logic [31:0] first, second;
  assign {operation, group, first, second} = instruction_i;

  // ------------------------------------------------------------------------------- what instructions name

  logic [47:0] offset;
  logic place_indirect;
  region_e place_region;
  operand_t place, stream;
  peer_mode_e peer_mode;
  assign offset = {second[15:0], first};
  assign place_indirect = operation[6] ? second[31] : operation[5];
  assign place_region = region_e'(operation[6] ? second[28:24] : {2'b00, operation[4:2]});
  assign peer_mode = peer_mode_e'(operation[3:2]);

  always_comb begin
    place = '0;
    place.kind = OperandKindMemory;
    place.region = place_region;
    place.indirect = place_indirect;
    place.offset = offset;
    stream = '0;
    stream.kind = OperandKindStream;
    stream.offset = {16'd0, first};
  end

  // Bit d-1 for a distance d of 1 to 32, and all bits below it.
  logic [31:0] distance_bit, distance_mask;
  logic distance_counts;
  assign distance_counts = first - 32'd1 < 32'd32;
  always_comb begin
    for (int unsigned i = 0; i < 32; i++) begin
      distance_bit[i]  = distance_counts && first[5:0] == 6'(i + 1);
      distance_mask[i] = first > 32'(i);
    end
  end

  // ------------------------------------------------------------------------------------------- the move

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      unique case (group)
        GroupPlace: begin
          unique case (operation[1:0])
            PlaceTake: build_q.op0 <= place;
            PlaceWith: build_q.op1 <= place;
            PlaceKeep: build_q.local_ <= place;
            default: begin
              build_q.remote_address.offset <= offset;
              if (place_indirect) begin
                build_q.remote_address.result_region <= place_region;
              end else begin
                build_q.remote_address.region <= place_region;
              end
            end
          endcase
        end
        GroupPeer: begin
          if (operation[0]) begin
            build_q.remote <= '{
                kind: operation[1:0] == PeerSend ? RemoteKindMessage : RemoteKindMemory,
                cast: CastNone,
                peer: first[23:0],
                mode: peer_mode,
                tag: second[23:0],
                default: '0
            };
          end else begin
            build_q.op1.kind <= operation[1:0] == PeerArrive ? OperandKindArrival : OperandKindRemoteMemory;
            build_q.arrival <= '{peer: first[23:0], mode: peer_mode, tag: second[23:0], default: '0};
          end
        end
        GroupBuild: begin
          case (operation)
            BuildBegin: begin
              build_q <= '0;
              build_q.kind <= MoveKindMove;
              build_q.dtype <= datatype_e'(first[21:16]);
              call_func_q <= func_e'(first[15:8]);
              override_q <= 1'b0;
            end
            BuildCount, BuildCountIndirect: begin
              build_q.count <= {second[7:0], first};
              if (operation == BuildCountIndirect) build_q.count_indirect <= 1'b1;
            end
            BuildSignal: build_q.signal <= 1'b1;
            BuildSwap: build_q.swap <= first[0];
            BuildAfter: build_q.dependencies <= build_q.dependencies | distance_bit;
            BuildAfterAll: build_q.dependencies <= build_q.dependencies | distance_mask;
            BuildStreamAfter: begin
              if (first[5:0] != '0) begin
                if (build_q.segment_dependency0 == '0) begin
                  build_q.segment_dependency0 <= first[5:0];
                end else begin
                  build_q.segment_dependency1 <= first[5:0];
                end
              end
            end
            BuildFunction: begin
              call_func_q <= func_e'(first[7:0]);
              override_q <= 1'b1;
            end
            BuildTakeStream: build_q.op0 <= stream;
            BuildKeepStream: build_q.local_ <= stream;
            default: ;
          endcase
        end
        default: ;
      endcase
    end
  end

  // Two operands, or several messages or places for op1, are combined with the call's function.
  logic combines;
  assign combines = override_q || (build_q.op0.kind != OperandKindNone && build_q.op1.kind != OperandKindNone) ||
                    ((build_q.op1.kind == OperandKindArrival || build_q.op1.kind == OperandKindRemoteMemory) &&
                     build_q.arrival.mode != PeerModeRank);

  always_comb begin
    move_o = build_q;
    move_o.func = combines ? call_func_q : FuncNone;
  end

  // ----------------------------------------------------------------------------------- tickets and range

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q   <= 1'b0;
      ticket_q <= '0;
    end else if (valid_i && group == GroupBuild) begin
      if (operation == BuildBegin) begin
        open_q   <= 1'b1;
        ticket_q <= ticket_q + 1'b1;
      end
      if (operation == BuildEmit) open_q <= 1'b0;
    end
  end

  assign ticket_o = ticket_q + 1'b1;
  assign stale_o  = !open_q || first != ticket_q;

  always_comb begin
    range_o = 1'b0;
    case (group)
      GroupPlace: range_o = second[23:16] != '0 || (!operation[6] && second[31:24] != '0);
      GroupPeer: range_o = first[31:24] != '0 || second[31:24] != '0;
      GroupBuild: if (operation == BuildCount || operation == BuildCountIndirect) range_o = second[31:8] != '0;
      default: ;
    endcase
  end

endmodule
