/* Plug-ins of flowloom: the table of functions that a plug-in exports.
 *
 * A plug-in is a shared library with one function, flowloom_plugin(), which returns its table. docs/plugins.md of flowloom
 * explains how to write one. The same table for Rust is crates/plugin/src/abi.rs; a test compares both.
 *
 * Times are in picoseconds (_ps), sizes in bytes, rates in bit/s (_bps), fractions in parts per billion.
 */
#ifndef FLOWLOOM_H
#define FLOWLOOM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A plug-in of another version is refused. */
#define FLOWLOOM_VERSION 1

/* Rooms: congestion control on the TCP machine. */
#define FLOWLOOM_CONGESTION 1

/* Results of functions. FLOWLOOM_NO_EFFECT is for on_mark only. After FLOWLOOM_FAILED the point of the scenario ends with an error. */
#define FLOWLOOM_OK 0
#define FLOWLOOM_NO_EFFECT 1
#define FLOWLOOM_FAILED (-1)

/* A time that does not exist: no deadline, no round-trip sample. */
#define FLOWLOOM_NEVER UINT64_MAX

/* ecn: not, as RFC 3168, or exactly, as RFC 8257. */
#define FLOWLOOM_ECN_OFF 0
#define FLOWLOOM_ECN_CLASSIC 1
#define FLOWLOOM_ECN_EXACT 2

/* knows: what the controller knows of a flow in advance. */
#define FLOWLOOM_KNOWS_SIZE 1
#define FLOWLOOM_KNOWS_DEADLINE 2

/* Types of parameters. A number is passed as a double, a flag as 1 or 0, all others as whole numbers. */
#define FLOWLOOM_INTEGER 0
#define FLOWLOOM_NUMBER 1
#define FLOWLOOM_FRACTION 2
#define FLOWLOOM_TIME 3
#define FLOWLOOM_SIZE 4
#define FLOWLOOM_RATE 5
#define FLOWLOOM_FLAG 6

/* Causes of losses: three duplicate ACKs, the retransmission timer. */
#define FLOWLOOM_DUPLICATES 0
#define FLOWLOOM_TIMEOUT 1

/* The configuration of a host. */
typedef struct flowloom_host {
    uint64_t smss;          /* payload of a full segment */
    uint64_t header;        /* header of every packet */
    uint64_t init_window;   /* initial window */
    uint64_t nic_rate_bps;  /* largest rate of one flow */
    uint64_t max_rtt_ps;    /* longest unloaded round trip of the network */
} flowloom_host;

/* A flow when it opens. */
typedef struct flowloom_flow {
    uint64_t number;
    uint64_t size;          /* 0 without FLOWLOOM_KNOWS_SIZE */
    uint64_t start_ps;
    uint64_t deadline_ps;   /* FLOWLOOM_NEVER: none, or without FLOWLOOM_KNOWS_DEADLINE */
} flowloom_flow;

/* The window of a flow in bytes. */
typedef struct flowloom_window {
    uint64_t cwnd;
    uint64_t ssthresh;      /* UINT64_MAX before the first loss */
} flowloom_window;

/* An acknowledgment of new data. */
typedef struct flowloom_ack {
    uint64_t now_ps;
    uint64_t acked;         /* bytes newly acknowledged */
    uint64_t slow_start;    /* bytes that slow start adds to the window for them */
    uint64_t snd_una;       /* first byte not yet acknowledged */
    uint64_t snd_nxt;       /* next byte to send */
    uint64_t srtt_ps;       /* smoothed round trip */
    uint64_t rtt_ps;        /* round-trip sample of this ACK; FLOWLOOM_NEVER: none */
    uint64_t waited_ps;     /* time that the ACK has waited at this host */
    uint32_t ece;           /* not zero: the ACK echoes a mark */
    uint32_t window_limited;/* not zero: the window limits the sender, so that it may grow */
} flowloom_ack;

/* A loss. */
typedef struct flowloom_loss {
    uint64_t flight;        /* bytes sent and not acknowledged */
    uint32_t cause;         /* FLOWLOOM_DUPLICATES or FLOWLOOM_TIMEOUT */
    uint32_t after_mark;    /* not zero: a mark has cut the window since the lost segment was sent */
} flowloom_loss;

/* A parameter that a scenario may set. */
typedef struct flowloom_parameter {
    const char *name;       /* its key: lower case letters, digits and _ */
    const char *default_text; /* its default as a scenario writes it */
    const char *lowest;     /* the smallest value, or NULL */
    const char *highest;    /* the largest value, or NULL */
    const char *source;     /* source of the default */
    const char *about;      /* a sentence that describes it */
    uint32_t kind;          /* FLOWLOOM_INTEGER and so on */
    uint32_t reserved;      /* zero */
} flowloom_parameter;

/* A counter, which becomes a column of the tables. */
typedef struct flowloom_counter {
    const char *name;
    const char *unit;       /* "packets", "B" */
    const char *about;
} flowloom_counter;

/* The value of a parameter. */
typedef union flowloom_value {
    uint64_t integer;
    double number;
} flowloom_value;

/* The table. `own` is the block of a host's controller, `state` the block of a flow: own_size and state_size bytes, aligned to 16,
 * zero before `create` and `open`. The functions may be called on several threads at once, but for one host on one thread at a time.
 * The functions after on_loss may be NULL. They return FLOWLOOM_OK or FLOWLOOM_FAILED. */
typedef struct flowloom_table {
    uint32_t version, room, size;
    uint32_t parameter_size, counter_size, host_size, flow_size, window_size, ack_size, loss_size;
    uint32_t ecn;
    uint32_t knows;
    const char *name;       /* lower case letters, digits and _ */
    const char *summary;    /* one line */
    const char *source;     /* paper or RFC */
    const flowloom_parameter *parameters;
    uint64_t parameter_count;
    const flowloom_counter *counters;
    uint64_t counter_count;
    uint64_t own_size;
    uint64_t state_size;
    const void *context;    /* passed to create */
    /* Fills the controller of a host; `values` has a value for each parameter. Fails if values contradict each other. */
    int32_t (*create)(const void *context, void *own, const flowloom_host *host, const flowloom_value *values);
    /* A flow opens: fills its state. */
    int32_t (*open)(const void *own, void *state, const flowloom_flow *flow);
    /* New data is acknowledged outside recovery, and no mark cuts the window: may change the window. */
    int32_t (*on_ack)(const void *own, void *state, flowloom_window *window, const flowloom_ack *ack);
    /* A segment is lost: sets the slow-start threshold. */
    int32_t (*on_loss)(const void *own, void *state, const flowloom_window *window, const flowloom_loss *loss, uint64_t *ssthresh);
    /* The first mark since the data of the last cut was acknowledged: sets the window, or returns FLOWLOOM_NO_EFFECT. */
    int32_t (*on_mark)(const void *own, void *state, const flowloom_window *window, const flowloom_ack *ack, uint64_t *cwnd);
    /* New data is acknowledged, in recovery or not: before the functions above. */
    int32_t (*on_feedback)(const void *own, void *state, const flowloom_ack *ack);
    /* Before on_loss, and when the timer expires again for the same segment. */
    int32_t (*before_loss)(const void *own, void *state, uint32_t cause, uint64_t now_ps);
    /* A segment is handed to the NIC; `sent` bytes of the flow were sent at least once. */
    int32_t (*on_sent)(const void *own, void *state, uint64_t now_ps, uint64_t sent);
    /* Sets the largest number of bytes in flight, independent of the window. */
    int32_t (*most)(const void *own, const void *state, uint64_t *most);
    /* Sets the earliest departure of the next segment. */
    int32_t (*not_before)(const void *own, const void *state, uint64_t srtt_ps, uint64_t *at_ps);
    /* The flow continues the connection of a flow that has ended with the state `before`. */
    int32_t (*inherit)(const void *own, void *state, const void *before);
    /* Returns the counters of a flow: counter_count totals that never decrease. */
    const uint64_t *(*count)(const void *own, const void *state);
    /* Ends the state of a flow, and the controller of a host. */
    void (*close)(void *state);
    void (*destroy)(void *own);
    /* Returns why the last function on this thread has failed, or NULL. */
    const char *(*failure)(void);
} flowloom_table;

/* The first members of every table: { FLOWLOOM_TABLE, .name = "mine", ... } */
#define FLOWLOOM_TABLE                                                                                                     \
    .version = FLOWLOOM_VERSION, .room = FLOWLOOM_CONGESTION, .size = sizeof(flowloom_table),                              \
    .parameter_size = sizeof(flowloom_parameter), .counter_size = sizeof(flowloom_counter),                                \
    .host_size = sizeof(flowloom_host), .flow_size = sizeof(flowloom_flow), .window_size = sizeof(flowloom_window),        \
    .ack_size = sizeof(flowloom_ack), .loss_size = sizeof(flowloom_loss)

/* The function that a plug-in exports. */
const flowloom_table *flowloom_plugin(void);

#ifdef __cplusplus
}
#endif

#endif
