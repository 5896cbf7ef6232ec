// How the daemon's malloc, jemalloc, is set up. Linked into programs only: coppice::allocator.
//
// Serving a call takes some hundred blocks, most of which another thread frees: glibc's arenas make
// that a tenth of the processor time of a call. And what a flood of calls took goes back to the
// system within seconds, by a thread of jemalloc's own; glibc keeps what lies between blocks in
// use.

// Read by jemalloc before main. Dirty pages, which are free but not given back, stay for a second:
// one that is taken again costs a page fault. A few arenas, as each keeps its own free pages.
// Blocks of a tree's record lie many to a slab, since jemalloc never gives back its own notes about
// slabs; and no thread keeps free blocks beyond 8 KiB to itself.
// NOLINTNEXTLINE(readability-identifier-naming): jemalloc looks for this name
extern "C" const char* const malloc_conf;
extern "C" const char* const malloc_conf =
    "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0,narenas:4,"
    "slab_sizes:1024-4096:8,lg_tcache_max:13";
