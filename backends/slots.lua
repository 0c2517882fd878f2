-- What every script of a pool begins with (put in front of each by slots.py).
-- KEYS: slots, n, wait, waiting, caps, leases, then one grants list for each gateway named in ARGV[3], then the script's own.
-- ARGV: clock offset in ms (0 but in tests of the scripts), the calling gateway, the gateways known to live (space between), then the script's own.
local SLOTS, N, WAIT, WAITING, CAPS, LEASES = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local GATEWAY = ARGV[2]
local SCAN = 64          -- waiters looked at in one go: those at the head may be waiting for other replicas
local GRANTS_TTL = 10000 -- ms; a wake-up list that nobody pops is only litter
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])

local grants = {}
local place = 7
for peer in string.gmatch(ARGV[3], '%S+') do
  grants[peer] = KEYS[place]
  place = place + 1
end

local lives = {}
local function alive(gateway)
  if lives[gateway] == nil then
    local expiry = redis.call('ZSCORE', LEASES, gateway)
    lives[gateway] = expiry and tonumber(expiry) > now or false
  end
  return lives[gateway]
end

local function has_room(replica)
  local cap = tonumber(redis.call('HGET', CAPS, replica) or '0')
  return tonumber(redis.call('HGET', N, replica) or '0') < cap
end

local function any_room()
  for _, replica in ipairs(redis.call('HKEYS', CAPS)) do
    if has_room(replica) then return true end
  end
  return false
end

-- A slot is "replica gateway since"; a waiter is "gateway class replica replica ...", in the order it prefers them.
local function holder_of(request)
  local slot = redis.call('HGET', SLOTS, request)
  if slot then return string.match(slot, '^(%S+) (%S+) (%d+)$') end
end

local function forget(request)
  redis.call('HDEL', WAITING, request)
  return redis.call('ZREM', WAIT, request)
end

local function take(request, replica, gateway)
  redis.call('HSET', SLOTS, request, string.format('%s %s %d', replica, gateway, now))
  redis.call('HINCRBY', N, replica, 1)
  forget(request)
end

local function wake(request, replica, gateway)
  -- The grant is already state. A gateway whose list we were not given finds it with its next poll.
  local list = grants[gateway]
  if list then
    redis.call('RPUSH', list, request .. ' ' .. replica)
    redis.call('PEXPIRE', list, GRANTS_TTL)
  end
end

local function serve_one(request)
  local words = {}
  for word in string.gmatch(redis.call('HGET', WAITING, request) or '', '%S+') do words[#words + 1] = word end
  if #words < 2 or not alive(words[1]) then
    forget(request)
    return true
  end
  for i = 3, #words do
    if has_room(words[i]) then
      take(request, words[i], words[1])
      wake(request, words[i], words[1])
      return true
    end
  end
  return false
end

-- Free capacity goes to those who wait, in their order; after every script no waiter at the head could be served.
local function serve()
  local moved = true
  while moved and redis.call('ZCARD', WAIT) > 0 and any_room() do
    moved = false
    for _, request in ipairs(redis.call('ZRANGE', WAIT, 0, SCAN - 1)) do
      if serve_one(request) then
        moved = true
        if not any_room() then return end
      end
    end
  end
end

