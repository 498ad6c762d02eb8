/* The least that an executable task can do. Graphile Worker dies of one that does not read. */
#include <unistd.h>

int main(void) {
  char bytes[4096];
  while (read(0, bytes, sizeof bytes) > 0) continue;
  return 0;
}
