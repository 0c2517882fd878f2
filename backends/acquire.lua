-- A slot now, or a place in the line. Repeatable: a request that holds a slot gets the same one again.
-- KEYS[last]: the request's tombstone. ARGV[4..]: request, may wait (0/1), depth limit, arrival ms (0: now), class,
-- then for each replica, best first: name, cap, calls that this gateway itself has running there.
local TOMBSTONE = KEYS[#KEYS]
local request, may_wait, depth_limit = ARGV[4], ARGV[5] == '1', tonumber(ARGV[6])
local arrival, class = tonumber(ARGV[7]), ARGV[8]

if redis.call('EXISTS', TOMBSTONE) == 1 then return { 'gone' } end
if not alive(GATEWAY) then return { 'lease' } end
local replica = holder_of(request)
if replica then return { 'held', replica } end

local preference = {}
for i = 9, #ARGV, 3 do
  preference[#preference + 1] = ARGV[i]
  redis.call('HSET', CAPS, ARGV[i], ARGV[i + 1])
  -- What this gateway has running counts even when the server has forgotten it (a flush must not overload an engine);
  -- the next sweep puts the slots themselves back and counts anew.
  if tonumber(redis.call('HGET', N, ARGV[i]) or '0') < tonumber(ARGV[i + 2]) then
    redis.call('HSET', N, ARGV[i], ARGV[i + 2])
  end
end

local record = GATEWAY .. ' ' .. class .. ' ' .. table.concat(preference, ' ')
local waiting = redis.call('HEXISTS', WAITING, request) == 1
if waiting then redis.call('HSET', WAITING, request, record) end

serve() -- those ahead first: what is free after this, nobody ahead can use
replica = holder_of(request)
if replica then return { 'held', replica } end
for _, name in ipairs(preference) do
  if has_room(name) then
    take(request, name, GATEWAY)
    return { 'held', name }
  end
end

local depth = redis.call('ZCARD', WAIT)
if waiting then return { 'waits', redis.call('ZSCORE', WAIT, request), depth } end
if not may_wait then return { 'busy', depth } end
if depth >= depth_limit then return { 'full', depth } end
if arrival == 0 then arrival = now end
redis.call('ZADD', WAIT, arrival, request)
redis.call('HSET', WAITING, request, record)
return { 'waits', string.format('%d', arrival), depth + 1 }
