#include "link.h"

#define SWEEP_MS 500
#define HARD_SECONDS 2.0 /* so much later than it should have ended a process is killed */
#define REST_NS 50000000 /* after the system had no file for a connection */
#define GO 'g'
#define FULL 'f'
#define NO 'n'
#define WAITING_EACH 4 /* clients that wait for their turn, for each stranger that there may be */
#define PREFIX "compass-rpcd-"

enum state { STRANGER, WAITING, SESSION, REMOVER };

/* A process with one client, or one that removes the folder of another. `clock`: shared memory, in which it says when
 * its call has to be over. */
struct child {
  int process, control;
  double *clock, end, seconds;
  enum state state;
  uint32_t number; /* names its folder */
  uint32_t turn;   /* of those that wait, the lowest is next */
  bool heard;      /* said that its client is known, which it says once */
};

struct children {
  struct child *at;
  uint32_t count, most, turns;
  struct link link;
};

static volatile int stopped;
static void stop(int number) {
  (void)number;
  stopped = 1;
}

/* Removes the folders of servers that were killed: nobody holds their locks. */
static void sweep_folders(const char *folder) {
  int parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  void *list = parent < 0 ? NULL : fdopendir(fcntl(parent, F_DUPFD_CLOEXEC, 3));
  struct dirent *item;
  while (list && (item = readdir(list))) {
    struct about_file about = {0};
    if (strncmp(item->name, PREFIX, sizeof PREFIX - 1) != 0) continue;
    int file = openat(parent, item->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file >= 0 && !statx(file, "", AT_EMPTY_PATH, STATX_BASIC, &about) && about.user == (uint32_t)getuid() &&
        flock(file, LOCK_EX | LOCK_NB) == 0)
      delete_tree(parent, item->name);
    if (file >= 0) close(file);
  }
  if (list) closedir(list);
  if (parent >= 0) close(parent);
}

/* A folder that is locked, and still there when it is: who sweeps could have come in between. */
static bool make_root(struct server *server) {
  for (int tries = 0; tries < 10; tries++) {
    struct about_file about = {0};
    snprintf(server->root, sizeof server->root, "%s/" PREFIX "XXXXXX", server->options.folder);
    if (!mkdtemp(server->root)) return false;
    server->root_file = open(server->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (server->root_file >= 0 && flock(server->root_file, LOCK_EX | LOCK_NB) == 0 &&
        !statx(AT_FDCWD, server->root, 0, STATX_BASIC, &about))
      return true;
    if (server->root_file >= 0) close(server->root_file);
  }
  return false;
}

static int listening(struct options *options, uint16_t *port) {
  for (uint32_t number = options->port; number < options->port_end || number == options->port; number++) {
    struct address_in address = {AF_INET, (uint16_t)(number << 8 | (number >> 8 & 0xff)), options->host, {0}};
    uint32_t size = sizeof address;
    int one = 1, file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | O_NONBLOCK, 0);
    if (file < 0) return -1;
    setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (!bind(file, &address, size) && !listen(file, 256) && !getsockname(file, &address, &size)) {
      *port = (uint16_t)(address.port << 8 | address.port >> 8);
      return file;
    }
    close(file);
  }
  return -1;
}

bool server_open(struct server *server, struct failure *failure) {
  uint16_t port = 0;
  char line[120];
  struct limit files;
  if (!getrlimit(RLIMIT_NOFILE, &files) && files.soft < files.hard) {
    files.soft = files.hard < 16384 ? files.hard : 16384;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  server->listener = listening(&server->options, &port);
  server->port = port;
  if (server->listener < 0)
    return wrong(failure, "rpc-address", "cannot bind to any port in [%u, %u)", server->options.port,
                 server->options.port_end);
  sweep_folders(server->options.folder);
  if (!make_root(server))
    return wrong(failure, "rpc-file", "there can be no folder in '%.400s': %s", server->options.folder,
                 strerror(errno));
  static const int signals[] = {SIGINT, SIGTERM};
  for (int i = 0; i < 2; i++) signal(signals[i], stop);
  signal(SIGPIPE, SIG_IGN);
  const uint8_t *host = (const uint8_t *)&server->options.host;
  write_out(
      1, line,
      (size_t)snprintf(line, sizeof line, "listening on %u.%u.%u.%u:%u\n", host[0], host[1], host[2], host[3], port));
  return true;
}

/* -- the child */

/* Waits for the turn, which the parent gives; says to the client that others are served. */
static bool wait_turn(struct channel *channel, int control, const struct greeted *greeted) {
  struct text empty = {0};
  char given = 0, text[300];
  bool sent = send(control, greeted, sizeof *greeted, MSG_NOSIGNAL) == sizeof *greeted;
  text_put(&empty, "{}");
  for (int wait = 50; sent; wait = 1000) {
    struct pollfd look = {.fd = control, .events = POLLIN};
    int ready = poll(&look, 1, wait);
    if (ready > 0) {
      snprintf(text, sizeof text, "cannot find server that matches key=client:%.*s",
               greeted->key_size < 200 ? (int)greeted->key_size : 200, greeted->key);
      if (recv(control, &given, 1, 0) == 1 && given != GO)
        refuse(channel, given == FULL ? "too many wait for this server" : text,
               given == FULL ? "rpc-quota" : "rpc-key");
      break;
    }
    sent = channel_peek(channel) != LOST && channel_send(channel, WAIT, 0, &empty, NULL, 0);
  }
  free(empty.data);
  return given == GO;
}

static bool confine(const struct quota *quota) {
  struct limit core = {0, 0}, data = {quota->memory * 2 + (512ull << 20), quota->memory * 2 + (512ull << 20)};
  setrlimit(RLIMIT_CORE, &core);
  setrlimit(RLIMIT_DATA, &data);
  return catch_printed();
}

static void serve(struct server *server, int socket, int control, volatile double *clock, const char *folder) {
  struct session session = {
      .channel = {.socket = socket, .greeting = true, .stall = server->options.quota.stall_seconds},
      .driver = &server->driver,
      .quota = server->options.quota,
      .clock = clock};
  struct greeted greeted = {0};
  struct failure failure;
  struct text welcome = {0};
  channel_tune(socket);
  if (!greet(&session.channel, server, now() + session.quota.greeting_seconds, &greeted)) return;
  if (!wait_turn(&session.channel, control, &greeted)) return;
  text_print(&welcome, "{\"proof\":\"%s\",\"seconds\":%.17g}", greeted.proof, greeted.seconds);
  if (!channel_send(&session.channel, WELCOME, 0, &welcome, NULL, 0)) return;
  session.channel.greeting = false;
  session.seconds = greeted.seconds;
  session.end = greeted.seconds ? now() + greeted.seconds : 1e18;
  bool ready = (confine(&session.quota) && mkdirat(AT_FDCWD, folder, 0700) == 0 &&
                folder_open(&session.folder, folder, session.quota.disk) && chdir(folder) == 0) ||
               wrong(&failure, "rpc-file", "the session can have no folder here: %s", strerror(errno));
  if (ready && driver_begin(&server->driver, &failure))
    session_serve(&session);
  else
    session_complain(&session, 0, &failure);
  session_end(&session);
}

/* What only the parent uses. */
static void leave_parent(const struct server *server, const struct children *children) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  if (children->link.channel.socket >= 0) close(children->link.channel.socket);
  close(server->listener);
  close(server->root_file); /* the lock is the parent's, who has it open, too */
  for (uint32_t i = 0; i < children->count; i++) {
    close(children->at[i].control);
    munmap(children->at[i].clock, 4096); /* the times of others are not this one's to set */
  }
}

static _Noreturn void be_child(struct server *server, const struct children *children, int socket, int control,
                               volatile double *clock, const char *folder) {
  leave_parent(server, children);
  serve(server, socket, control, clock, folder);
  _exit(0);
}

/* -- the parent */

static uint32_t in_state(const struct children *children, enum state state) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < children->count; i++) found += children->at[i].state == state;
  return found;
}

static void folder_of(const struct server *server, uint32_t number, char out[4200]) {
  snprintf(out, 4200, "%s/%u", server->root, number);
}

static void accept_client(struct server *server, struct children *children) {
  int ends[2], socket = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
  if (socket < 0) {
    struct timespec moment = {0, REST_NS};
    if (errno != EAGAIN) nanosleep(&moment, NULL);
    return;
  }
  double *clock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (clock == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    if (clock != MAP_FAILED) munmap(clock, 4096);
    close(socket);
    return;
  }
  static uint32_t number;
  int process = fork();
  number++;
  if (process == 0) {
    char folder[4200];
    folder_of(server, number, folder);
    close(ends[0]);
    be_child(server, children, socket, ends[1], clock, folder);
  }
  close(socket);
  close(ends[1]);
  if (process < 0) {
    munmap(clock, 4096);
    close(ends[0]);
    return;
  }
  children->at[children->count++] = (struct child){
      process, ends[0], clock, now() + server->options.quota.greeting_seconds + HARD_SECONDS, 0, STRANGER,
      number,  0,       false};
}

/* Deletes the folder of a session in a process of its own, which takes the session's place: nobody waits for a disk. */
static void remove_folder(const struct server *server, struct children *children, struct child child) {
  int ends[2], pair = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), process = pair ? -1 : fork();
  char folder[4200];
  folder_of(server, child.number, folder);
  if (process == 0) leave_parent(server, children);
  if (process <= 0) delete_tree(AT_FDCWD, folder);
  if (process == 0) _exit(0);
  if (!pair) close(ends[1]);
  if (process < 0) {
    if (!pair) close(ends[0]);
    munmap(child.clock, 4096);
    return;
  }
  child.clock[0] = 0;
  children->at[children->count++] =
      (struct child){process, ends[0], child.clock, 1e18, 0, REMOVER, child.number, 0, false};
}

static void end_child(struct server *server, struct children *children, uint32_t at) {
  struct child child = children->at[at];
  kill(-child.process, SIGKILL);
  kill(child.process, SIGKILL);
  waitpid(child.process, NULL, 0);
  close(child.control);
  children->at[at] = children->at[--children->count];
  if (child.state == SESSION && !stopped)
    remove_folder(server, children, child);
  else
    munmap(child.clock, 4096);
}

static void say(const struct child *child, char what) { send(child->control, &what, 1, MSG_NOSIGNAL); }

/* Lets those in who wait, as long as there is room. */
static void give_turns(const struct server *server, struct children *children) {
  while (in_state(children, SESSION) < server->options.quota.sessions) {
    struct child *next = NULL;
    for (uint32_t i = 0; i < children->count; i++)
      if (children->at[i].state == WAITING && (!next || children->at[i].turn < next->turn)) next = &children->at[i];
    if (!next) return;
    next->state = SESSION;
    next->end = next->seconds ? now() + next->seconds + HARD_SECONDS : 1e18;
    say(next, GO);
  }
}

/* Whether a client comes with the right key: that of the server, or one that the tracker gave him. */
static bool is_admitted(struct server *server, struct children *children, const struct greeted *greeted) {
  const char *key = server->options.key;
  if (greeted->key_size > sizeof greeted->key) return false;
  if (server->options.tracker) return link_claims(&children->link, (struct name){greeted->key, greeted->key_size});
  return greeted->key_size == strlen(key) && !memcmp(greeted->key, key, greeted->key_size);
}

/* Tells the tracker of the sessions that are free. */
static void step_link(const struct server *server, struct children *children) {
  uint32_t busy = in_state(children, SESSION) + in_state(children, WAITING), sessions = server->options.quota.sessions;
  if (server->options.tracker) link_step(&children->link, server, busy < sessions ? sessions - busy : 0);
}

/* What a child says: that its client is known, and for how long he wants to stay; or its end. */
static void hear_child(struct server *server, struct children *children, uint32_t at) {
  struct child *child = &children->at[at];
  struct greeted greeted;
  ssize_t n = recv(child->control, &greeted, sizeof greeted, MSG_DONTWAIT);
  if (n == sizeof greeted && child->state == STRANGER && !child->heard) {
    child->heard = true;
    if (!is_admitted(server, children, &greeted)) return say(child, NO);
    child->seconds = greeted.seconds;
    child->state = WAITING;
    child->turn = ++children->turns;
    child->end = 1e18;
    if (in_state(children, WAITING) > WAITING_EACH * server->options.quota.strangers) {
      child->state = STRANGER; /* as long as that is said to him */
      child->end = now() + HARD_SECONDS;
      say(child, FULL);
    }
  } else if (n >= 0 || errno != EAGAIN) {
    end_child(server, children, at);
  }
}

static bool has_ended(int file) {
  char said[256];
  return read(file, said, sizeof said) <= 0;
}

void server_run(struct server *server) {
  const struct quota *quota = &server->options.quota;
  struct children children = {.most = (WAITING_EACH + 1) * quota->strangers + quota->sessions};
  struct pollfd *look = calloc(children.most + 3, sizeof *look);
  children.at = calloc(children.most + 1, sizeof *children.at);
  bool ready = link_open(&children.link, server) && look && children.at;
  while (ready && !stopped) {
    bool accepting = in_state(&children, STRANGER) < quota->strangers && children.count < children.most;
    for (uint32_t i = 0; i < children.count; i++) look[i] = (struct pollfd){children.at[i].control, POLLIN, 0};
    look[children.count] = (struct pollfd){accepting ? server->listener : -1, POLLIN, 0};
    uint32_t count = children.count;
    step_link(server, &children);
    look[count + 1] = (struct pollfd){children.link.channel.socket, POLLIN, 0};
    look[count + 2] = (struct pollfd){server->options.until_stdin_ends ? 0 : -1, POLLIN, 0};
    if (poll(look, count + 3, SWEEP_MS) < 0) continue;
    if (look[count + 2].revents && has_ended(0)) break;
    if (look[count + 1].revents) link_hear(&children.link);
    for (uint32_t i = count; i-- > 0;) { /* from the last: others that were looked at take the place of one that ends */
      double late = children.at[i].clock[0], time = now();
      if (look[i].revents)
        hear_child(server, &children, i);
      else if (time > children.at[i].end || (late > 0 && time > late + HARD_SECONDS))
        end_child(server, &children, i);
    }
    if (look[count].revents) accept_client(server, &children);
    give_turns(server, &children);
  }
  stopped = true;
  while (children.count) end_child(server, &children, 0);
  delete_tree(AT_FDCWD, server->root);
}
