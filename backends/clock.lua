if now == 0 then -- a part of its own, for it costs a call: who gives a slot back needs no time, unless somebody waits
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

