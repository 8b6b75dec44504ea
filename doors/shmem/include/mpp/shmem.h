/* The name that older programs include. */
#include <shmem.h>
