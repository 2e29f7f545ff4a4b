-- tell: settles undecided takes of a sealed share for a reshare. Only takes that are still undecided change.
--
-- KEYS     stock, buyer, order, journal of the share
-- ARGV[1]  epoch of the reshare
-- ARGV[2]  1 to 500 takes, packed one behind the other: id (16 bytes), 1 for kept or 0 for dropped (1 byte)
-- RETURNS  integers: {7} keys missing · {6} not sealed at this epoch · {0, number of changes made}
-- CALLER   Gate.Tell

local GONE, CONFLICT, DONE = 7, 6, 0
local MAX_BATCH, ROW = 500, 17

if not epoch then
  return {GONE}
end
if epoch ~= ARGV[1] or not sealed then
  return {CONFLICT}
end
local batch = ARGV[2]
local n = #batch / ROW
if n < 1 or n > MAX_BATCH or n ~= math.floor(n) then
  return redis.error_reply('ERR tell: malformed batch')
end

local ids = {}
for i = 1, n do
  ids[i] = sub(batch, (i - 1) * ROW + 1, i * ROW - 1)
end
load(ids)
local made = 0
for i = 1, n do
  local id, keep = ids[i], byte(batch, i * ROW) == 1
  local entry = entries[id]
  if is_undecided(entry) then
    if not keep then
      give_back(entry)
    end
    become(id, entry, keep and 'k' or 'd')
    made = made + 1
  else
    forget(id) -- it would keep the share from opening
  end
end
save()
return {DONE, made}
