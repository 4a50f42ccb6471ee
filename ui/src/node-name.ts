// What a node is called on the page: by its host, and by its number where several share one.
import type { ClusterNode } from "./rows";

export function nodeName(nodes: readonly ClusterNode[], id: string): string {
  const node = nodes.find((known) => known.node_id === id);
  if (!node) return `Node ${id.slice(0, 8)}`;
  const host = node.node_name ?? node.node_ip ?? "Node";
  const namesakes = nodes.filter((other) => (other.node_name ?? other.node_ip) === host);
  return namesakes.length > 1 ? `${host}, node ${node.node_number}` : host;
}
