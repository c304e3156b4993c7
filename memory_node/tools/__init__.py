"""The ten tools that answer questions, each a plain function of a ToolContext, and calls by a language model."""

from memory_node.tools.body_status import body_status as body_status
from memory_node.tools.call import call_tool as call_tool
from memory_node.tools.entity_query import entity_query as entity_query
from memory_node.tools.episode_summary import episode_summary as episode_summary
from memory_node.tools.get_current_context import get_current_context as get_current_context
from memory_node.tools.locate import locate as locate
from memory_node.tools.recall import recall as recall
from memory_node.tools.search_gists import search_gists as search_gists
from memory_node.tools.semantic_search import semantic_search as semantic_search
from memory_node.tools.spatial_query import spatial_query as spatial_query
from memory_node.tools.temporal_query import temporal_query as temporal_query
