/* Process entry, in place of the C start-up files that a build machine may not have. */
#include "libc.h"

int main(int, char **);
int __libc_start_main(int (*)(int, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

__attribute__((used)) static void begin(uint64_t *stack, void (*loader_end)(void)) {
  __libc_start_main(main, (int)stack[0], (char **)(stack + 1), NULL, NULL, loader_end, stack);
}

__attribute__((naked, used)) void _start(void) {
  __asm__(
      "xorl %ebp, %ebp\n"
      "movq %rsp, %rdi\n"
      "movq %rdx, %rsi\n"
      "andq $-16, %rsp\n"
      "callq begin\n"
      "hlt");
}
