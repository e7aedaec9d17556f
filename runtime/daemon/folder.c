#include "folder.h"

#define MOST_FILES 10000u
#define MOST_FOLDERS 1000u
#define MOST_PARTS 16
#define NAME_BYTES 256
#define MOST_NAME (MOST_PARTS * NAME_BYTES)

static bool no_name(struct failure *failure, struct name name) {
  wrong(failure, "rpc-file", "'%.*s' is no name of a file in the session's folder",
        name.size < 200 ? (int)name.size : 200, name.data);
  memcpy(failure->help, "names are relative, without '..'", 33);
  return false;
}

/* Copies a name, without the path of the folder where it begins with that; false where it leaves the folder. */
static bool checked(const struct folder *folder, struct name name, char out[MOST_NAME], struct failure *failure) {
  size_t root = strlen(folder->path);
  struct name given = name;
  if (name.size > root && !memcmp(name.data, folder->path, root) && name.data[root] == '/') {
    name.data += root + 1;
    name.size -= root + 1;
  }
  if (!name.size || name.size >= MOST_NAME || memchr(name.data, 0, name.size)) return no_name(failure, given);
  memcpy(out, name.data, name.size);
  out[name.size] = 0;
  int parts = 0;
  for (const char *at = out; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
    size_t size = strcspn(at, "/");
    if (!size || size >= NAME_BYTES || ++parts > MOST_PARTS || !strncmp(at, "./", 2) || !strcmp(at, ".") ||
        !strncmp(at, "../", 3) || !strcmp(at, ".."))
      return no_name(failure, given);
  }
  return true;
}

/* Opens the folder of a name, whose last part is given; folders on the way are made where that is wanted, as many as a
 * session may have. */
static int walk(struct folder *folder, char *name, bool make, const char **last) {
  int at = fcntl(folder->root, F_DUPFD_CLOEXEC, 3);
  char *slash;
  for (*last = name; at >= 0 && (slash = strchr(name, '/')); *last = name = slash + 1) {
    *slash = 0;
    if (make && folder->folders < MOST_FOLDERS && !mkdirat(at, name, 0700)) folder->folders++;
    int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *slash = '/';
    close(at);
    at = next;
  }
  return at;
}

static int open_file(struct folder *folder, struct name name, int flags, char path[MOST_NAME],
                     struct failure *failure) {
  const char *last;
  if (!checked(folder, name, path, failure)) return -1;
  int at = walk(folder, path, flags & O_CREAT, &last);
  int file = at < 0 ? -1 : openat(at, last, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  int why = errno;
  if (at >= 0) close(at);
  if (file < 0 && at < 0 && flags & O_CREAT && folder->folders >= MOST_FOLDERS)
    wrong(failure, "rpc-quota", "a session may have %u folders", MOST_FOLDERS);
  else if (file < 0)
    wrong(failure, "rpc-file", "the file '%.200s' cannot be opened: %s", path, strerror(why));
  return file;
}

int folder_file(struct folder *folder, struct name name, struct failure *failure) {
  char path[MOST_NAME];
  return open_file(folder, name, O_RDONLY, path, failure);
}

static struct file_size *find(struct folder *folder, const char *name) {
  for (uint32_t i = 0; i < folder->count; i++)
    if (!strcmp(folder->files[i].name, name)) return &folder->files[i];
  return NULL;
}

/* The entry of a file, made where there is none. */
static struct file_size *entry(struct folder *folder, const char *name, struct failure *failure) {
  struct file_size *found = find(folder, name);
  if (found) return found;
  if (folder->count == folder->room) {
    struct file_size *grown = realloc(folder->files, (folder->room * 2 + 16) * sizeof *grown);
    if (!grown) return wrong(failure, "rpc-quota", "there is no memory for a file"), NULL;
    folder->files = grown;
    folder->room = folder->room * 2 + 16;
  }
  char *copy = strdup(name);
  if (!copy) return wrong(failure, "rpc-quota", "there is no memory for a file"), NULL;
  folder->files[folder->count] = (struct file_size){copy, 0};
  return &folder->files[folder->count++];
}

bool folder_write(struct folder *folder, struct name name, uint64_t offset, const void *data, size_t size,
                  struct failure *failure) {
  char path[MOST_NAME];
  if (!checked(folder, name, path, failure)) return false;
  const struct file_size *known = find(folder, path);
  uint64_t before = known && offset ? known->size : 0, others = 0;
  if (offset > before)
    return wrong(failure, "rpc-file", "the file '%.200s' has %llu bytes, not %llu", path, (unsigned long long)before,
                 (unsigned long long)offset);
  for (uint32_t i = 0; i < folder->count; i++) others += &folder->files[i] == known ? 0 : folder->files[i].size;
  uint64_t whole = offset + size > before ? offset + size : before;
  if (others + whole > folder->limit)
    return wrong(failure, "rpc-quota", "the files of a session may have %llu bytes; with '%.200s' they would have %llu",
                 (unsigned long long)folder->limit, path, (unsigned long long)(others + whole));
  if (!known && folder->count >= MOST_FILES)
    return wrong(failure, "rpc-quota", "a session may have %u files", MOST_FILES);
  int file = open_file(folder, name, O_WRONLY | O_CREAT | (offset ? 0 : O_TRUNC), path, failure);
  if (file < 0) return false;
  struct file_size *sized = entry(folder, path, failure);
  const uint8_t *at = data;
  ssize_t n = 1;
  for (; sized && size && n > 0; at += n > 0 ? n : 0, size -= n > 0 ? (size_t)n : 0, offset += n > 0 ? (uint64_t)n : 0)
    n = pwrite(file, at, size, (long)offset);
  if (sized) sized->size = whole;
  int why = errno;
  close(file);
  return sized && (!size || wrong(failure, "rpc-file", "the file '%.200s' cannot be written: %s", path, strerror(why)));
}

bool folder_remove(struct folder *folder, struct name name, struct failure *failure) {
  char path[MOST_NAME];
  const char *last;
  if (!checked(folder, name, path, failure)) return false;
  int at = walk(folder, path, false, &last);
  bool gone = at < 0 || unlinkat(at, last, 0) == 0 || errno == ENOENT;
  int why = errno;
  if (at >= 0) close(at);
  if (!gone) return wrong(failure, "rpc-file", "the file '%.200s' cannot be removed: %s", path, strerror(why));
  struct file_size *known = find(folder, path);
  if (known) {
    free(known->name);
    *known = folder->files[--folder->count];
  }
  return true;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The names in a folder, sorted, and how many; the folder is closed. */
static char **names_in(int at, size_t *count) {
  char **names = NULL;
  size_t room = 0;
  void *list = fdopendir(at);
  struct dirent *item;
  *count = 0;
  if (!list) close(at);
  while (list && (item = readdir(list))) {
    if (!strcmp(item->name, ".") || !strcmp(item->name, "..")) continue;
    if (*count == room) {
      char **grown = realloc(names, (room = room * 2 + 16) * sizeof *grown);
      if (!grown) break;
      names = grown;
    }
    char *copy = strdup(item->name);
    if (copy) names[(*count)++] = copy;
  }
  if (list) closedir(list);
  if (*count) qsort(names, *count, sizeof *names, by_name);
  return names;
}

/* Adds the names below a folder, which is closed; `prefix` ends with a slash, or is empty. */
static void list_below(int at, const char *prefix, int depth, bool below, struct text *out) {
  int again = fcntl(at, F_DUPFD_CLOEXEC, 3);
  size_t count;
  char **names = names_in(at, &count);
  for (size_t i = 0; i < count; i++) {
    char path[MOST_NAME];
    int size = snprintf(path, sizeof path, "%s%s", prefix, names[i]);
    int next = below && depth < MOST_PARTS && again >= 0
                   ? openat(again, names[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                   : -1;
    if (next >= 0 && size < (int)sizeof path - 1) {
      memcpy(path + size, "/", 2);
      list_below(next, path, depth + 1, below, out);
    } else if (size < (int)sizeof path) {
      if (out->size > 1) text_put(out, ",");
      text_string(out, path, (size_t)size);
    }
    free(names[i]);
  }
  free(names);
  if (again >= 0) close(again);
}

static bool is_root(const struct folder *folder, struct name name) {
  static const char *const roots[] = {"", ".", "./"};
  for (int i = 0; i < 3; i++)
    if (name.size == strlen(roots[i]) && !memcmp(name.data, roots[i], name.size)) return true;
  return name.size == strlen(folder->path) && !memcmp(name.data, folder->path, name.size);
}

bool folder_list(struct folder *folder, struct name name, bool below, struct text *out, struct failure *failure) {
  char path[MOST_NAME] = "";
  int at;
  while (name.size && name.data[name.size - 1] == '/' && !is_root(folder, name)) name.size--;
  if (is_root(folder, name)) {
    at = openat(folder->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } else {
    const char *last;
    if (!checked(folder, name, path, failure)) return false;
    int above = walk(folder, path, false, &last);
    at = above < 0 ? -1 : openat(above, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (above >= 0) close(above);
  }
  if (at < 0) return wrong(failure, "rpc-file", "there is no folder '%.200s'", path);
  char prefix[MOST_NAME] = "";
  if (below && path[0] && snprintf(prefix, sizeof prefix, "%s/", path) >= (int)sizeof prefix) prefix[0] = 0;
  struct text list = {0};
  text_put(&list, "[");
  list_below(at, prefix, 0, below, &list);
  text_put(&list, "]");
  text_add(out, list.data, list.size);
  out->failed = out->failed || list.failed;
  free(list.data);
  return true;
}

bool folder_path(struct folder *folder, struct name name, struct text *out, struct failure *failure) {
  char path[MOST_NAME], whole[2 * MOST_NAME];
  if (!checked(folder, name, path, failure)) return false;
  int size = snprintf(whole, sizeof whole, "%s/%s", folder->path, path);
  text_string(out, whole, (size_t)size);
  return true;
}

bool folder_open(struct folder *folder, const char *path, uint64_t limit) {
  *folder = (struct folder){.root = -1, .limit = limit};
  if (!realpath(path, folder->path)) return false;
  folder->root = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return folder->root >= 0;
}

void folder_close(struct folder *folder) {
  for (uint32_t i = 0; i < folder->count; i++) free(folder->files[i].name);
  free(folder->files);
  close(folder->root);
}

void delete_tree(int parent, const char *name) {
  int at = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int again = at < 0 ? -1 : fcntl(at, F_DUPFD_CLOEXEC, 3);
  size_t count = 0;
  char **names = at < 0 ? NULL : names_in(at, &count);
  for (size_t i = 0; i < count; i++) {
    if (again >= 0 && unlinkat(again, names[i], 0) != 0) delete_tree(again, names[i]);
    free(names[i]);
  }
  free(names);
  if (again >= 0) close(again);
  unlinkat(parent, name, AT_REMOVEDIR);
}
