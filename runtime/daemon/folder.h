/* The folder of a session: the only files that it reads and writes, and how much they may take. */
#ifndef DAEMON_FOLDER_H
#define DAEMON_FOLDER_H

#include "failure.h"
#include "json.h"

struct file_size {
  char *name;
  uint64_t size;
};

struct folder {
  int root;
  char path[4096];
  uint64_t limit;
  struct file_size *files;
  uint32_t count, room, folders; /* folders: that it has made, which stay */
};

/* A name as a client gives it: bytes, which may contain NULs. */
struct name {
  const char *data;
  size_t size;
};

bool folder_open(struct folder *folder, const char *path, uint64_t limit);
bool folder_write(struct folder *folder, struct name name, uint64_t offset, const void *data, size_t size,
                  struct failure *failure);
/* Opens a file to read it; -1 with a failure. */
int folder_file(struct folder *folder, struct name name, struct failure *failure);
bool folder_remove(struct folder *folder, struct name name, struct failure *failure);
/* Writes a JSON list: the names in a folder; with `below` all files below it, by their names from the session's folder.
 */
bool folder_list(struct folder *folder, struct name name, bool below, struct text *out, struct failure *failure);
/* The whole path of a name. */
bool folder_path(struct folder *folder, struct name name, struct text *out, struct failure *failure);
void folder_close(struct folder *folder);
/* Deletes a folder with all that is in it. */
void delete_tree(int parent, const char *name);

#endif
