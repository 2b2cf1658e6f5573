/* Plug-ins of flowloom: the tables of functions that plug-ins export, one for each room.
 *
 * A plug-in is a shared library with one function, flowloom_plugin(), which returns its table. docs/plugins.md of flowloom
 * explains how to write one. The same for Rust is in the crate flowloom-plugin; a test compares both.
 *
 * Times are in picoseconds (_ps), sizes in bytes, rates in bit/s (_bps), fractions in parts per billion.
 */
#ifndef FLOWLOOM_H
#define FLOWLOOM_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A plug-in of another version is refused. */
#define FLOWLOOM_VERSION 1

/* Rooms: congestion control on the TCP machine; whole transports; queue disciplines; routers; policies, which set class, rank and ECT of the
 * packets that hosts send. */
#define FLOWLOOM_CONGESTION 1
#define FLOWLOOM_TRANSPORT 2
#define FLOWLOOM_QDISC 3
#define FLOWLOOM_ROUTER 4
#define FLOWLOOM_POLICY 5

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

/* knows: what the plug-in knows of a flow in advance. */
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
    bool ece;               /* the ACK echoes a mark; never without ECN */
    bool window_limited;    /* the window limits the sender, so that it may grow */
    bool may_change;        /* on_ack may change the window: not in recovery, and not if on_mark follows */
    uint8_t reserved[5];    /* zero */
} flowloom_ack;

/* A loss. */
typedef struct flowloom_loss {
    uint64_t flight;        /* bytes sent and not acknowledged */
    uint32_t cause;         /* FLOWLOOM_DUPLICATES or FLOWLOOM_TIMEOUT */
    bool after_mark;        /* a mark has cut the window since the lost segment was sent */
    uint8_t reserved[3];    /* zero */
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

/* A packet. Times, the path and the route are set by the simulator. */
typedef struct flowloom_packet {
    uint64_t arrival_ps;    /* when its last bit has reached this node */
    uint64_t sent_ps;       /* when it was handed to the NIC */
    uint64_t offset;        /* first payload byte within the flow, or the cumulative acknowledgment */
    uint64_t words[2];      /* the protocol's header */
    uint32_t flow;
    uint32_t rank;          /* of rank-ordered queues: smaller goes first */
    uint16_t wire_len;      /* bytes on the wire, headers included */
    uint16_t payload;       /* application bytes */
    uint16_t path_tag;      /* reserved */
    uint8_t kind;           /* FLOWLOOM_DATA and so on */
    uint8_t prio;           /* class of strict-priority queues: 0 is served first */
    uint16_t flags;         /* FLOWLOOM_ECT and so on */
    uint8_t route[6];       /* reserved */
} flowloom_packet;

/* Kinds of packets. A transport's own kinds begin at FLOWLOOM_OWN, a policy's at FLOWLOOM_POLICY_KINDS. */
#define FLOWLOOM_DATA 0
#define FLOWLOOM_ACK 1
#define FLOWLOOM_SYN 2
#define FLOWLOOM_SYNACK 3
#define FLOWLOOM_TRIMMED 8
#define FLOWLOOM_OWN 16
#define FLOWLOOM_POLICY_KINDS 128

/* Flags of packets: a queue may mark it; a queue has marked it; the receiver has seen a mark (ACKs); the payload was sent before; from the
 * flow's destination to its source (set by the simulator). */
#define FLOWLOOM_ECT 2
#define FLOWLOOM_CE 3
#define FLOWLOOM_ECE 4
#define FLOWLOOM_RETX 16
#define FLOWLOOM_BACK 64

/* The head of every table; the functions of the room follow it.
 *
 * The simulator owns two kinds of blocks: `own`, one for each machine of the room (the controller of a host), and `state`, one for each state
 * that the machine keeps (that of a flow). They have own_size and state_size bytes, are aligned to 16, are zero before the function that creates
 * them, and may move between calls. The functions may be called on several threads at once, but for one machine on one thread at a time.
 * They return FLOWLOOM_OK or FLOWLOOM_FAILED. */
typedef struct flowloom_head {
    uint32_t version, room, size, parameter_size, counter_size;
    uint32_t knows;
    uint32_t sizes[8];      /* of the structures that the functions of the room take */
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
    /* End a state and a machine; may be NULL. */
    void (*close)(void *state);
    void (*destroy)(void *own);
    /* Returns why the last function on this thread has failed, or NULL; may be NULL. */
    const char *(*failure)(void);
} flowloom_head;

/* The first members of a head, but for its sizes. */
#define FLOWLOOM_HEAD(number, table)                                                                                       \
    .version = FLOWLOOM_VERSION, .room = (number), .size = sizeof(table), .parameter_size = sizeof(flowloom_parameter),    \
    .counter_size = sizeof(flowloom_counter)

/* Congestion control on the TCP machine: `own` is the controller of a host, `state` belongs to a flow. The functions after on_loss may be NULL. */
typedef struct flowloom_congestion {
    flowloom_head head;
    uint32_t ecn;
    uint32_t shares;        /* 1: keeps nothing outside of its blocks and does not compute with addresses, so that hosts may share an instance of WebAssembly; 0 otherwise */
    /* Fills the controller of a host; `values` has a value for each parameter. Fails if values contradict each other. */
    int32_t (*create)(const void *context, void *own, const flowloom_host *host, const flowloom_value *values);
    /* A flow opens: fills its state. */
    int32_t (*open)(const void *own, void *state, const flowloom_flow *flow);
    /* New data is acknowledged: may change the window if ack->may_change. */
    int32_t (*on_ack)(const void *own, void *state, flowloom_window *window, const flowloom_ack *ack);
    /* A segment is lost: sets the slow-start threshold. */
    int32_t (*on_loss)(const void *own, void *state, const flowloom_window *window, const flowloom_loss *loss, uint64_t *ssthresh);
    /* The first mark since the data of the last cut was acknowledged, after on_ack: sets the window, or returns FLOWLOOM_NO_EFFECT. */
    int32_t (*on_mark)(const void *own, void *state, const flowloom_window *window, const flowloom_ack *ack, uint64_t *cwnd);
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
} flowloom_congestion;

/* The first members of the head of a flowloom_congestion: .head = { FLOWLOOM_CONGESTION_HEAD, .name = "mine", ... } */
#define FLOWLOOM_CONGESTION_HEAD                                                                                           \
    FLOWLOOM_HEAD(FLOWLOOM_CONGESTION, flowloom_congestion),                                                               \
    .sizes = {sizeof(flowloom_host), sizeof(flowloom_flow), sizeof(flowloom_window), sizeof(flowloom_ack), sizeof(flowloom_loss)}

/* Queue disciplines: the simulator keeps the packets of a port in up to FLOWLOOM_MOST_QUEUES queues, and the plug-in decides where they wait. */
#define FLOWLOOM_MOST_QUEUES 64

/* Results of enqueue: the packet is dropped; the packet of data loses its payload and is admitted. Result of evict: no packet is dropped. Result of
 * on_dequeue: the packet is marked if it is ECN-capable. */
#define FLOWLOOM_DROP 2
#define FLOWLOOM_TRIM 3
#define FLOWLOOM_NONE 4
#define FLOWLOOM_MARK 5

/* A limit that does not exist. */
#define FLOWLOOM_UNLIMITED UINT64_MAX

/* The port of a discipline. */
typedef struct flowloom_port {
    uint64_t rate_bps;      /* line rate */
    uint64_t mtu;           /* largest packet on the wire */
    uint64_t max_rtt_ps;    /* longest unloaded round trip of the network */
    uint64_t limit_packets; /* most packets that may wait, or FLOWLOOM_UNLIMITED */
    uint64_t limit_bytes;   /* most bytes that may wait, or FLOWLOOM_UNLIMITED */
    uint64_t link;          /* number of its link */
    uint64_t seed;          /* of the run; with the link, the seed of the random numbers of a port */
    uint32_t host_port;     /* not zero: the port is a host's NIC */
    uint32_t reserved;      /* zero */
} flowloom_port;

/* The packets in one queue of a port. */
typedef struct flowloom_queue {
    uint64_t bytes;
    uint32_t packets;
    uint32_t first;         /* bytes of the first packet on the wire; 0: the queue is empty */
} flowloom_queue;

/* The packets that wait at a port. */
typedef struct flowloom_view {
    uint64_t packets;       /* in all queues */
    uint64_t bytes;
    const flowloom_queue *queues; /* as many as the table says */
} flowloom_view;

/* Where an admitted packet waits. It is zero when enqueue is called. */
typedef struct flowloom_place {
    uint64_t rank;          /* smaller ranks are sent first, equal ranks in the order of arrival */
    uint32_t queue;
    uint32_t trim_to;       /* with FLOWLOOM_TRIM: the most bytes that stay on the wire */
    uint32_t mark;          /* not zero: the packet is marked if it is ECN-capable */
    uint32_t reserved;      /* zero */
} flowloom_place;

/* A queue discipline: `own` is the discipline of a port; there are no states. The functions after enqueue may be NULL.
 *
 * now_ps is the time of the cause of a call, which may be earlier than the current event of the simulator, but never decreases for one port. */
typedef struct flowloom_qdisc {
    flowloom_head head;
    uint32_t queues;        /* of a port: 1 to FLOWLOOM_MOST_QUEUES */
    uint32_t marks;         /* not zero: the discipline may mark packets */
    /* Fills the discipline of a port; `values` has a value for each parameter. Fails if values contradict each other. */
    int32_t (*create)(const void *context, void *own, const flowloom_port *port, const flowloom_value *values);
    /* A packet arrives that does not start at once; the view does not have it. Sets its place and returns FLOWLOOM_OK
     * or FLOWLOOM_TRIM, or returns FLOWLOOM_DROP. */
    int32_t (*enqueue)(void *own, uint64_t now_ps, const flowloom_view *view, const flowloom_packet *packet, flowloom_place *place);
    /* The port is free: sets the queue that sends its first packet. NULL: the first queue that has packets. */
    int32_t (*dequeue)(void *own, uint64_t now_ps, const flowloom_view *view, uint32_t *queue);
    /* A packet was admitted: sets the queue whose last packet is dropped, and is called again, or returns FLOWLOOM_NONE. */
    int32_t (*evict)(void *own, uint64_t now_ps, const flowloom_view *view, uint32_t *queue);
    /* A packet leaves its queue; the view does not have it any more. Returns FLOWLOOM_OK or FLOWLOOM_MARK. */
    int32_t (*on_dequeue)(void *own, uint64_t now_ps, const flowloom_view *view, const flowloom_packet *packet);
    /* A packet finds the port idle, and is sent without waiting. */
    int32_t (*on_pass)(void *own, uint64_t now_ps, const flowloom_packet *packet);
    /* Returns the counters of a port: counter_count totals that never decrease. */
    const uint64_t *(*count)(const void *own);
} flowloom_qdisc;

/* The first members of the head of a flowloom_qdisc: .head = { FLOWLOOM_QDISC_HEAD, .name = "mine", ... } */
#define FLOWLOOM_QDISC_HEAD                                                                                                \
    FLOWLOOM_HEAD(FLOWLOOM_QDISC, flowloom_qdisc),                                                                         \
    .sizes = {sizeof(flowloom_port), sizeof(flowloom_queue), sizeof(flowloom_view), sizeof(flowloom_place), sizeof(flowloom_packet)}

/* Routers: the plug-in chooses among the next hops of shortest paths. decides: at no switch, it plans the paths of flows; at every switch for
 * packets from a flow's source; at every switch for all packets. */
#define FLOWLOOM_AHEAD 0
#define FLOWLOOM_THERE 1
#define FLOWLOOM_BOTH_WAYS 2

/* The network of a router. */
typedef struct flowloom_network {
    uint64_t nodes;         /* hosts and switches */
    uint64_t links;         /* a cable has two */
    uint64_t hosts;
    uint64_t max_rtt_ps;    /* longest unloaded round trip */
    uint64_t seed;          /* of the run; with the node, the seed of the random numbers of a switch */
} flowloom_network;

/* A choice to make. */
typedef struct flowloom_hop {
    uint64_t now_ps;        /* FLOWLOOM_NEVER: a path is planned */
    uint64_t node;          /* number of the node: a switch, or a host with several NICs */
    uint64_t flow;          /* number of the flow; FLOWLOOM_NEVER: a path is planned */
    uint32_t src, dst;      /* the five-tuple of the packet */
    uint32_t src_port, dst_port;
    uint32_t protocol;
    uint32_t hash;          /* CRC-32 (IEEE 802.3) of the five-tuple, as ecmp computes it */
} flowloom_hop;

/* A next hop. */
typedef struct flowloom_candidate {
    uint64_t link;          /* number of the link */
    uint64_t rate_bps;
    uint64_t waiting;       /* bytes that wait at its port; 0 unless the table has loads, and if a path is planned */
    uint32_t busy;          /* not zero: a packet is in transmission; 0 in the same cases */
    uint32_t reserved;      /* zero */
} flowloom_candidate;

/* A router: `own` is the router of the network, `state` belongs to a switch. On several threads, each has its own router, and the state of a
 * switch is in one of them. Candidates are at least two, in rising order of links, and up. */
typedef struct flowloom_router {
    flowloom_head head;
    uint32_t decides;       /* FLOWLOOM_AHEAD, FLOWLOOM_THERE or FLOWLOOM_BOTH_WAYS */
    uint32_t loads;         /* not zero: it reads the loads of ports */
    /* Fills the router of the network; `values` has a value for each parameter. Fails if values contradict each other. May be NULL. */
    int32_t (*create)(const void *context, void *own, const flowloom_network *network, const flowloom_value *values);
    /* Chooses for the path of a flow, by the arguments only. NULL: paths are planned as by ecmp. */
    int32_t (*choose)(const void *own, const flowloom_hop *hop, const flowloom_candidate *candidates, uint64_t count, uint64_t *index);
    /* Fills the state of a switch that decides for the first time. May be NULL. */
    int32_t (*open)(const void *own, void *state, uint64_t node);
    /* Chooses for a packet. */
    int32_t (*decide)(const void *own, void *state, const flowloom_hop *hop, const flowloom_packet *packet,
                      const flowloom_candidate *candidates, uint64_t count, uint64_t *index);
} flowloom_router;

/* The first members of the head of a flowloom_router: .head = { FLOWLOOM_ROUTER_HEAD, .name = "mine", ... } */
#define FLOWLOOM_ROUTER_HEAD                                                                                               \
    FLOWLOOM_HEAD(FLOWLOOM_ROUTER, flowloom_router),                                                                       \
    .sizes = {sizeof(flowloom_network), sizeof(flowloom_hop), sizeof(flowloom_candidate), sizeof(flowloom_packet)}

/* ---------------------------------------------------------------- transports */

/* The flow of a timer that belongs to the host. */
#define FLOWLOOM_NO_FLOW UINT32_MAX
/* Result of poll: there is no packet to send. */
#define FLOWLOOM_NOTHING 1

/* uses: packets may be marked, have classes, have ranks. */
#define FLOWLOOM_USES_MARKS 1
#define FLOWLOOM_USES_CLASSES 2
#define FLOWLOOM_USES_RANKS 4

/* The configuration of a host and of its network. */
typedef struct flowloom_endpoint {
    uint64_t mtu;           /* largest packet on the wire, headers included */
    uint64_t header;        /* header of every packet; also the size of a packet without payload */
    uint64_t nic_rate_bps;  /* largest rate of one flow */
    uint64_t host_rate_bps; /* the sum of the rates of the host's NICs */
    uint64_t max_rtt_ps;    /* longest unloaded round trip of the network */
    uint64_t classes;       /* at the ports of switches; 8 if their queue discipline does not set it */
} flowloom_endpoint;

/* A flow and its ends. */
typedef struct flowloom_seen_flow {
    uint64_t number;
    uint64_t size;          /* 0 without FLOWLOOM_KNOWS_SIZE */
    uint64_t start_ps;
    uint64_t deadline_ps;   /* FLOWLOOM_NEVER: none, or without FLOWLOOM_KNOWS_DEADLINE */
    uint32_t source;
    uint32_t destination;
} flowloom_seen_flow;

/* The effect of the arrival of payload. */
typedef struct flowloom_delivery {
    uint64_t next;          /* all bytes below have arrived: the cumulative acknowledgment */
    uint64_t new_bytes;     /* bytes that had not arrived before */
    uint64_t block_start;   /* the contiguous range of arrived bytes around them */
    uint64_t block_end;
} flowloom_delivery;

/* The state of an open flow at its sender. Values that the protocol does not have are 0. */
typedef struct flowloom_sample {
    uint64_t cwnd;          /* congestion window in bytes */
    uint64_t ssthresh;      /* slow-start threshold in bytes */
    uint64_t srtt_ps;       /* smoothed round trip */
    uint64_t rate_bps;      /* rate at which the flow may send data */
    uint64_t in_flight;     /* payload bytes that are sent and not acknowledged */
} flowloom_sample;

/* The functions of the simulator that a transport may call while one of its functions runs. A call that is not allowed has no effect, and ends
 * the run when the function of the plug-in returns; it returns FLOWLOOM_FAILED, 0 or NULL. */
typedef struct flowloom_transport_calls {
    /* Sets the deadline of a timer of a flow, or of the host with FLOWLOOM_NO_FLOW. Kinds are numbers below 4. A deadline in the past is due now; one that
     * is 2^63 picoseconds or more never comes. */
    int32_t (*arm)(void *handle, uint32_t flow, uint32_t kind, uint64_t at_ps);
    int32_t (*disarm)(void *handle, uint32_t flow, uint32_t kind);
    /* Sends a packet before all packets of poll. */
    int32_t (*control)(void *handle, const flowloom_packet *packet);
    /* Delivers payload to the application, while on_packet handles the packet of data that carries it. `to` may be NULL. */
    int32_t (*deliver)(void *handle, uint32_t flow, uint64_t offset, uint64_t length, flowloom_delivery *to);
    /* Returns 1 if all bytes of a flow that this host receives have arrived, and 0 otherwise. */
    int32_t (*finished)(void *handle, uint32_t flow);
    /* Ends the host's part of a flow: clears its timers and ends its state. At its sender the flow closes, and later packets of the flow are not passed
     * to the plug-in. */
    int32_t (*close)(void *handle, uint32_t flow);
    /* As close, for a flow with a deadline that its sender gives up. */
    int32_t (*terminate)(void *handle, uint32_t flow);
    /* Count a retransmission timeout and a fast retransmit of a flow that this host sends. */
    int32_t (*timeout)(void *handle, uint32_t flow);
    int32_t (*fast_retransmit)(void *handle, uint32_t flow);
    /* Adds to a declared counter of a flow, at most 2^32 at a time. */
    int32_t (*count)(void *handle, uint32_t flow, uint32_t counter, uint64_t more);
    /* Returns 64 random bits, which depend only on the seed of the run and the host. */
    uint64_t (*random)(void *handle);
    /* Describes a flow. */
    int32_t (*view)(void *handle, uint32_t flow, flowloom_seen_flow *to);
    /* Returns the payload of the packet that begins at this byte of a flow that this host sends: a full packet, less at the end of the flow, and 0 from
     * there on. */
    uint64_t (*payload)(void *handle, uint32_t flow, uint64_t offset);
    /* Returns the state that this host has for a flow: state_size bytes that are zero at the first call. It stays where it is until the flow closes at
     * this host. */
    void *(*state)(void *handle, uint32_t flow);
} flowloom_transport_calls;

/* What a transport sees and may do while one of its functions runs. It must not be used afterwards. */
typedef struct flowloom_context {
    uint64_t now_ps;
    const flowloom_transport_calls *calls;
    void *handle;           /* passed to them */
    uint32_t host;          /* the number of this host */
    uint32_t reserved;      /* zero */
} flowloom_context;

/* A transport: `own` is a host, with all its flows; `state` is that of calls->state. The functions after give_up may be NULL. */
typedef struct flowloom_transport {
    flowloom_head head;
    uint32_t uses;          /* a sum of FLOWLOOM_USES_MARKS and so on */
    uint32_t reserved;      /* zero */
    /* Fills a host; `values` has a value for each parameter. Fails if values contradict each other. */
    int32_t (*create)(const void *context, void *own, const flowloom_endpoint *endpoint, const flowloom_value *values);
    /* The application opens a flow at this host. */
    int32_t (*on_flow)(void *own, const flowloom_context *cx, uint32_t flow);
    /* A packet has reached this host. */
    int32_t (*on_packet)(void *own, const flowloom_context *cx, const flowloom_packet *packet);
    /* A timer is due: a flow's, or the host's with FLOWLOOM_NO_FLOW. It is disarmed before the call. */
    int32_t (*on_timer)(void *own, const flowloom_context *cx, uint32_t kind, uint32_t flow);
    /* The NIC can take a packet: fills it, which is zero before, or returns FLOWLOOM_NOTHING. Then it is called again after another function. */
    int32_t (*poll)(void *own, const flowloom_context *cx, flowloom_packet *packet);
    /* The host's policy gives up a flow that this host sends: forgets it. The flow closes after the call. */
    int32_t (*give_up)(void *own, const flowloom_context *cx, uint32_t flow);
    /* Fills the sample of an open flow that this host sends; zero before. `state` is NULL if the flow has none. */
    int32_t (*sample)(const void *own, const void *state, uint32_t flow, flowloom_sample *sample);
} flowloom_transport;

/* The first members of the head of a flowloom_transport. */
#define FLOWLOOM_TRANSPORT_HEAD                                                                                            \
    FLOWLOOM_HEAD(FLOWLOOM_TRANSPORT, flowloom_transport),                                                                 \
    .sizes = {sizeof(flowloom_endpoint), sizeof(flowloom_seen_flow), sizeof(flowloom_packet), sizeof(flowloom_delivery),        \
              sizeof(flowloom_sample), sizeof(flowloom_context), sizeof(flowloom_transport_calls)}

/* ---------------------------------------------------------------- policies */

/* The functions of the simulator that a policy may call while one of its functions runs. A call that is not allowed has no effect, and ends the
 * run when the function of the plug-in returns; it returns FLOWLOOM_FAILED, 0 or NULL. */
typedef struct flowloom_policy_calls {
    /* As for transports. The policy's timers are not those of the transport. */
    int32_t (*arm)(void *handle, uint32_t flow, uint32_t kind, uint64_t at_ps);
    int32_t (*disarm)(void *handle, uint32_t flow, uint32_t kind);
    /* Gives up a flow with a deadline that this host sends, after the current function. Has no effect if the flow is not open. */
    int32_t (*terminate)(void *handle, uint32_t flow);
    /* Returns 1 if all bytes of a flow that this host receives have arrived, and 0 otherwise. */
    int32_t (*finished)(void *handle, uint32_t flow);
    /* Fills the transport's sample of a flow that this host sends: zeros if it is not open. */
    int32_t (*sample)(void *handle, uint32_t flow, flowloom_sample *to);
    int32_t (*count)(void *handle, uint32_t flow, uint32_t counter, uint64_t more);
    uint64_t (*random)(void *handle);
    int32_t (*view)(void *handle, uint32_t flow, flowloom_seen_flow *to);
    /* Returns the state that this host has for a flow: state_size bytes that are zero at the first call. It stays where it is until on_close has
     * returned, at the host that sends the flow, and to the end of the run at the other host. */
    void *(*state)(void *handle, uint32_t flow);
} flowloom_policy_calls;

/* What a policy sees and may do while one of its functions runs. It must not be used afterwards. */
typedef struct flowloom_policy_context {
    uint64_t now_ps;
    const flowloom_policy_calls *calls;
    void *handle;           /* passed to them */
    uint32_t host;          /* the number of this host */
    uint32_t reserved;      /* zero */
} flowloom_policy_context;

/* A policy: `own` is that of a host; `state` is that of calls->state. The functions after on_send may be NULL. */
typedef struct flowloom_policy {
    flowloom_head head;
    uint32_t uses;          /* a sum of FLOWLOOM_USES_MARKS and so on */
    uint32_t reserved;      /* zero */
    /* Fills the policy of a host; `values` has a value for each parameter. Fails if values contradict each other. */
    int32_t (*create)(const void *context, void *own, const flowloom_endpoint *endpoint, const flowloom_value *values);
    /* The NIC takes a packet of this host: may set its class, its rank and ECT. */
    int32_t (*on_send)(void *own, const flowloom_policy_context *cx, flowloom_packet *packet);
    /* A packet has reached this host, before the transport sees it. */
    int32_t (*on_receive)(void *own, const flowloom_policy_context *cx, const flowloom_packet *packet);
    /* The application opens a flow at this host, before the transport opens it. */
    int32_t (*on_open)(void *own, const flowloom_policy_context *cx, uint32_t flow);
    /* The sender of a flow, at this host, counts a retransmission timeout. */
    int32_t (*on_timeout)(void *own, const flowloom_policy_context *cx, uint32_t flow);
    /* The last byte of a flow has arrived at this host. */
    int32_t (*on_finish)(void *own, const flowloom_policy_context *cx, uint32_t flow);
    /* A flow that this host sends is closed or was given up. Its timers and its state end after the call. */
    int32_t (*on_close)(void *own, const flowloom_policy_context *cx, uint32_t flow);
    /* A timer is due: a flow's, or the host's with FLOWLOOM_NO_FLOW. It is disarmed before the call. */
    int32_t (*on_timer)(void *own, const flowloom_policy_context *cx, uint32_t kind, uint32_t flow);
} flowloom_policy;

/* The first members of the head of a flowloom_policy. */
#define FLOWLOOM_POLICY_HEAD                                                                                               \
    FLOWLOOM_HEAD(FLOWLOOM_POLICY, flowloom_policy),                                                                       \
    .sizes = {sizeof(flowloom_endpoint), sizeof(flowloom_seen_flow), sizeof(flowloom_packet), sizeof(flowloom_sample),          \
              sizeof(flowloom_policy_context), sizeof(flowloom_policy_calls)}

/* The function that a plug-in exports: returns the head of its table. */
const flowloom_head *flowloom_plugin(void);

#ifdef __cplusplus
}
#endif

#endif
