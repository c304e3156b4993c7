-- A block of recalls counts once an hour, and how likely a memory is still to be recalled counts from the last recall.
ALTER TABLE usage ADD COLUMN block_began INTEGER NOT NULL DEFAULT 0;  -- first recall of the last block, ns
UPDATE usage SET block_began = last_recalled;
