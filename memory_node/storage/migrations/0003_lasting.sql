-- Observations that stand for more than one reading, by their last: the newest reading may be of one that began long ago.
CREATE INDEX node_lasting ON node (layer_id, last_stamp, stamp) WHERE kind = 1 AND last_stamp > stamp;
