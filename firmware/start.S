# Reset: stack, custom instructions on, .bss cleared, then the dispatcher, which does not return.
    .section .start, "ax"
    .globl _start
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, __stack_end
    li t0, 0x80000000           # VexRiscv: without this bit custom instructions are illegal
    csrw 0xBC0, t0
    la t0, trap
    csrw mtvec, t0
    la t0, __bss_begin
    la t1, __bss_end
1:  bgeu t0, t1, 2f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 1b
2:  call unisono_main

# Nothing is expected to trap. Stay here, so that the engine's deadlines report the calls.
    .balign 4
trap:
    j trap
