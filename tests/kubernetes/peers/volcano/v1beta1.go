// What Volcano 1.15 takes from its API types and their newest published module does not have.

package v1beta1

// QueueAllocationGateKey names the scheduling gate of pods that wait for room in their queue.
const QueueAllocationGateKey = "scheduling.volcano.sh/queue-allocation-gate"
