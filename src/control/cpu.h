/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Remote calls: everything that depends on the processor and on the kernel's
 * conventions for it.  cpu_x86_64.h and cpu_aarch64.h define the same names;
 * this file includes the one of the build's architecture.  `tid` is a stopped
 * thread that the caller traces.
 *
 * Registers
 *
 * SP_CPU_MACHINE           e_machine in the header of an ELF file
 * SP_CPU_NAME              name of the architecture, for messages
 * SP_CPU_RED_ZONE          bytes below the stack pointer that a function uses
 * SP_CPU_VECTOR_MAX        the most bytes that vector registers take
 * sp_cpu_regs              registers of a stopped thread
 * sp_cpu_read, sp_cpu_write
 *                          read and set them.  False: the thread is gone, or
 *                          in a state in which it cannot make calls
 * sp_cpu_read_vector, sp_cpu_write_vector
 *                          the same for its vector registers
 * sp_cpu_pc, sp_cpu_sp, sp_cpu_thread_pointer, sp_cpu_result
 *                          program counter, stack pointer, address of the
 *                          thread's control block, result of a call
 * sp_cpu_dwarf             SP_CPU_DWARF_REGS registers in DWARF's order
 * sp_cpu_strip_signature   a return address from a stack, without the bits of
 *                          pointer authentication
 *
 * System calls
 *
 * sp_cpu_syscall           number of the system call that the thread is in, is
 *                          about to begin, or that was interrupted; negative:
 *                          none
 * sp_cpu_is_interrupted    true if that call is to be begun, for the first time
 *                          or again
 * sp_cpu_first_argument    of that call, while it is interrupted
 * sp_cpu_hides_restart     true if the kernel may restart that call from state
 *                          of its own, and the registers do not show it.  Then
 *                          let the thread enter the call: sp_cpu_skip makes the
 *                          kernel leave the call out, and sp_cpu_take_restart
 *                          copies what shows it from the registers at entry
 * sp_cpu_interrupt_wait    for a pending signal that has a handler: an
 *                          interrupted system call returns EINTR, if it is one
 *                          that no handler restarts
 * sp_cpu_set_syscall       registers that make system call n by the instruction
 *                          at `pc`
 * SP_CPU_OLD_WAITS         system calls that wait and that newer architectures
 *                          do not have
 * sp_cpu_syscall_code      code to find in the C library: a system call at
 *                          SP_CPU_SYSCALL_AT, in which no thread waits, and a
 *                          return after it
 * sp_cpu_sigreturn_code    code to find in the C library: the return from a
 *                          signal handler
 *
 * Calls
 *
 * sp_cpu_code              code that makes n calls, then sends SIGWINCH to its
 *                          own thread.  That signal is ignored unless the
 *                          thread is traced; the tracer takes over there, at
 *                          offset SP_CPU_CODE_END.  Without a tracer the code
 *                          returns through the signal frame
 * sp_cpu_set_run           registers that run that code at `pc`, with its n
 *                          calls at address `calls`, a stack that ends at
 *                          `frame`, and the signal frame at `frame`.  If
 *                          `in_hurry` the code also restores the priority as
 *                          hurry.h says before it returns through the frame
 *
 * Signal frames, as the kernel makes them for a handler and takes them back
 *
 * struct sp_cpu_frame      the frame; it lies SP_CPU_FRAME_OFFSET bytes below a
 *                          multiple of 16
 * sp_cpu_set_sigreturn     after the system call of sp_cpu_set_syscall, unless
 *                          a tracer stops the thread there, it returns to
 *                          `code`, the address of sp_cpu_sigreturn_code, and
 *                          through the signal frame at `frame`
 * sp_cpu_make_frame        a frame that restores these registers and the signal
 *                          mask and restarts an interrupted system call.
 *                          `vector`: n bytes as of sp_cpu_read_vector, with
 *                          room for 4 more; they are changed into the frame's
 *                          format, for address `vector_at`.  `code`: as of
 *                          sp_cpu_set_sigreturn, or 0
 */
#include <stdint.h>

/* One call, in the format that sp_cpu_code reads.  For a function with a large
 * result, args[0] is the address for the result. */
struct sp_cpu_call {
	uint64_t function; /* its address */
	uint64_t args[6];
	uint64_t result;
};

#if defined(__x86_64__)
#include "control/cpu_x86_64.h"
#elif defined(__aarch64__)
#include "control/cpu_aarch64.h"
#else
#error "sampleprof attach knows x86-64 and aarch64"
#endif
