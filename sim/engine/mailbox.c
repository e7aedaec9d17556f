#include "mailbox.h"

#include "futex.h"
#include "memory_map.h"

#define LOOK_NS 100000u
#define SPINS 16  /* looks, of 25 to 80 ns, before others are let run: the parent may have the same processor */
#define ROUNDS 2u /* of them, before a look at the socket */
int sched_yield(void);

static volatile struct mailbox *box;

bool mailbox_start(int shared_file) {
  void *got = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, shared_file, 0);
  if (got == MAP_FAILED) return false;
  box = got;
  return true;
}

/* The parent writes the ticket last, and nothing more before it has the reply. */
static bool take(struct request *request) {
  if (!box->request.ticket) return false;
  atomic_thread_fence(memory_order_acquire);
  *request = box->request;
  mailbox_clear();
  return true;
}

static bool look(struct request *request) {
  for (int i = 0; i < SPINS; i++) {
    if (take(request)) return true;
    __builtin_ia32_pause();
  }
  return false;
}

bool mailbox_take(int socket, struct request *request) {
  char next;
  bool found;
  uint32_t round = 0;
  box->looks = 1;
  for (uint64_t end = now() + LOOK_NS; !(found = look(request)) && now() < end; sched_yield())
    if (++round % ROUNDS == 0 && recv(socket, &next, 1, MSG_PEEK | MSG_DONTWAIT) >= 0) break;
  box->looks = 0;
  return found;
}

void mailbox_clear(void) { box->request.ticket = 0; }

void mailbox_answer(uint64_t ticket, uint64_t nanoseconds) {
  box->nanoseconds = nanoseconds;
  atomic_thread_fence(memory_order_release);
  box->answered = ticket;
}
